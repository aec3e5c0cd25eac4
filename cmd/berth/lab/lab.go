// Package lab fills a console with something to try: two tenants with VMs, an
// operator, and simulated hosts whose agents speak the real protocol.
package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/services"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/fleet"
	"berth/services/hostagent"
	"berth/services/hostagent/sim"
	"berth/services/tenancy"
)

// The lab's sign-ins: an operator of the platform, and the owners of two accounts.
const (
	Admin   = "admin@lab.test"
	TenantA = "tenant-a@lab.test"
	TenantB = "tenant-b@lab.test"
)

// Config says what a lab is made of.
type Config struct {
	DataDir  string       // simulated hosts and their agents live here
	Password string       // of all sign-ins; empty: the data folder's, made at the first start
	Console  string       // what the agents dial
	Latency  *sim.Latency // nil: as a small real host, shortened
	Log      *slog.Logger
	Hosts    int // how many, of Cards each; 0: the usual lab
	Cards    int

	Compute *compute.Service
	Fleet   *fleet.Service
	Tenancy *tenancy.Service
}

// Lab is a set-up lab.
type Lab struct {
	Password string
	Drivers  map[string]*sim.Driver // by zone, the first of each; tests break things with them

	config Config
	all    []*sim.Driver
	hosts  int
	agents []*hostagent.Agent
}

// quota is how many GPUs of each model an account may have in each region.
const quota = 8

// tokenLife is how long an agent has to use its token.
const tokenLife = 10 * time.Minute

// patience reflects lives of simulated things: long enough to be seen.
var patience = sim.Latency{
	Bind: 400 * time.Millisecond, Boot: 2500 * time.Millisecond, Shutdown: 1500 * time.Millisecond,
	Reboot: 1500 * time.Millisecond, Clean: 2 * time.Second,
}

// New makes the lab's users, accounts and hosts, or finds those of an earlier start.
func New(ctx context.Context, c Config) (*Lab, error) {
	l := &Lab{config: c, Password: c.Password, Drivers: map[string]*sim.Driver{}}
	if c.Latency == nil {
		l.config.Latency = &patience
	}
	if l.Password == "" {
		var err error
		if l.Password, err = keptPassword(c.DataDir); err != nil {
			return nil, err
		}
	}
	specs := hosts()
	if c.Hosts > 0 {
		specs = anyFleet(c.Hosts, c.Cards)
	}
	for zone, hosts := range specs {
		l.hosts += len(hosts)
		for i, part := range slices.Collect(slices.Chunk(hosts, hostsPerAgent)) {
			if err := l.addAgent(ctx, zone, i, part); err != nil {
				return nil, errors.Join(err, l.Close())
			}
		}
	}
	return l, nil
}

// hostsPerAgent bounds how many simulated hosts one agent serves.
const hostsPerAgent = 50

// keptPassword reads the data folder's password, and makes it at the first start.
func keptPassword(dataDir string) (string, error) {
	path := filepath.Join(dataDir, "lab.password")
	kept, err := os.ReadFile(path) //nolint:gosec // the operator names the folder
	if err == nil {
		return strings.TrimSpace(string(kept)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the lab's password: %w", err)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", fmt.Errorf("make data folder: %w", err)
	}
	made := strings.ToLower(rand.Text()[:12])
	return made, services.Wrap("keep the lab's password", os.WriteFile(path, []byte(made+"\n"), 0o600))
}

func (l *Lab) addAgent(ctx context.Context, zone string, n int, hosts []sim.HostSpec) error {
	dir := filepath.Join(l.config.DataDir, "lab", zone)
	if n > 0 {
		dir += "-" + strconv.Itoa(n)
	}
	driver, err := sim.New(sim.Config{
		Hosts: hosts, Latency: *l.config.Latency, StatePath: filepath.Join(dir, "hosts.json"), Logger: l.config.Log,
	})
	if err != nil {
		return fmt.Errorf("simulate hosts of %s: %w", zone, err)
	}
	l.all = append(l.all, driver)
	if n == 0 {
		l.Drivers[zone] = driver
	}
	token, err := l.config.Fleet.NewToken(ctx, zone, tokenLife)
	if err != nil {
		return err
	}
	agent, err := hostagent.New(hostagent.Options{
		Console: l.config.Console, Token: token, StateDir: filepath.Join(dir, "agent"), Driver: driver, Version: "lab", Logger: l.config.Log,
	})
	if err != nil {
		return fmt.Errorf("make agent of %s: %w", zone, err)
	}
	l.agents = append(l.agents, agent)
	return nil
}

// Run lets the lab's agents work until ctx ends.
func (l *Lab) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, a := range l.agents {
		g.Go(func() error { return a.Run(ctx) })
	}
	return g.Wait()
}

// Close keeps the simulated hosts for the next start.
func (l *Lab) Close() error {
	var errs []error
	for _, d := range l.all {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// seedWait bounds how long the first VMs may have to wait for hosts.
const seedWait = time.Minute

// Seed makes the sign-ins, accounts, quotas and VMs that are not there yet. The
// agents must be at work: VMs need hosts. It is repeated at each start; what
// somebody deleted stays deleted.
func (l *Lab) Seed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, seedWait)
	defer cancel()
	if _, err := l.config.Tenancy.EnsureUser(ctx, Admin, l.Password, true); err != nil {
		return err
	}
	if err := l.awaitHosts(ctx); err != nil {
		return err
	}
	for _, t := range tenants() {
		if err := l.seedTenant(ctx, t); err != nil {
			return fmt.Errorf("seed %s: %w", t.name, err)
		}
	}
	return l.tryFailing(ctx)
}

// tryFailing lets the operator try the workstation's cards once: the one that
// does not come back from its reset ends in quarantine, as it would anywhere.
func (l *Lab) tryFailing(ctx context.Context) error {
	page, err := l.config.Fleet.Cards(ctx, fleet.CardFilter{Text: oddHost, State: "free", Limit: 20})
	if err != nil {
		return err
	}
	admin := services.Actor{Email: Admin}
	for _, c := range page.Cards {
		if c.HostName != oddHost || c.CleanOrder > 0 {
			continue
		}
		for _, ask := range []fleet.NewCondition{{Action: services.CardDisable, Reason: "burn-in"}, {Action: services.CardEnable}} {
			if err := l.config.Fleet.SetCondition(ctx, admin, c.ID, ask); err != nil {
				return fmt.Errorf("try %s: %w", c.ID, err)
			}
		}
	}
	return nil
}

// awaitHosts waits until every simulated host is in the books.
func (l *Lab) awaitHosts(ctx context.Context) error {
	want := l.hosts
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		page, err := l.config.Fleet.Hosts(ctx, fleet.HostFilter{Limit: 1})
		if err != nil {
			return err
		}
		vouched := page.Counts.All - page.Counts.Silent
		if vouched >= want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for simulated hosts (%d of %d have reported): %w", vouched, want, ctx.Err())
		case <-poll.C:
		}
	}
}

func (l *Lab) seedTenant(ctx context.Context, t tenant) error {
	user, err := l.config.Tenancy.EnsureUser(ctx, t.email, l.Password, false)
	if err != nil {
		return err
	}
	accounts, err := l.config.Tenancy.Accounts(ctx, user)
	if err != nil || len(accounts) > 0 {
		return err
	}
	account, err := l.config.Tenancy.CreateAccount(ctx, t.name, user)
	if err != nil {
		return err
	}
	if err := l.setQuotas(ctx, account); err != nil {
		return err
	}
	owner := services.Actor{User: user, Email: t.email, Account: account, Role: services.RoleOwner}
	for _, vm := range t.vms {
		vm.Key = "lab-" + vm.Name
		if _, err := l.config.Compute.CreateVM(ctx, owner, vm); err != nil {
			return fmt.Errorf("create %s: %w", vm.Name, err)
		}
	}
	return nil
}

func (l *Lab) setQuotas(ctx context.Context, account services.AccountID) error {
	limit := quota
	regions := map[string]bool{}
	for _, p := range catalog.Published().Places {
		regions[p.Region] = true
	}
	for region := range regions {
		for _, m := range catalog.Published().Models {
			if err := l.config.Tenancy.SetQuota(ctx, account, region, m.ID, &limit); err != nil {
				return err
			}
		}
	}
	return nil
}
