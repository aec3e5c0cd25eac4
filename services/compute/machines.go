package compute

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
)

// NewVM asks for a virtual machine.
type NewVM struct {
	Name        string
	Zone        string
	Type        string              // spelled out or named
	Performance catalog.Performance // where the type's name leaves it open; empty: high
	Tenancy     catalog.Tenancy     // empty: default
	Image       string              // empty: the first of the list
	SSHKey      string              // one public key; may be empty
	UserData    string              // cloud-init; may be empty
	Key         string              `json:"-"` // idempotency key; empty: none
}

// The longest texts that a VM is made from, in bytes.
const (
	maxSSHKey   = 16 << 10
	maxUserData = 64 << 10
)

// CreateVM places a VM on a host and starts it; built-in GPUs come with it.
// Refusals: required, invalid-value, too-long, invalid-type and quota-exceeded
// (invalid), no-capacity (capacity).
func (s *Service) CreateVM(ctx context.Context, a services.Actor, in NewVM) (services.VMID, error) {
	id, err := s.once(ctx, a, in.Key, in, func(tx *db.Tx) (string, error) {
		vm, t, err := s.draftVM(ctx, tx, a, in)
		if err != nil {
			return "", err
		}
		cards, err := s.placeNew(ctx, tx, &vm, t)
		if err != nil {
			return "", err
		}
		return string(vm.ID), s.create(ctx, tx, a, vm, t, cards)
	})
	return services.VMID(id), err
}

// draftVM checks what was asked, all of it, and makes the VM, still without a host.
func (s *Service) draftVM(ctx context.Context, tx *db.Tx, a services.Actor, in NewVM) (db.VM, catalog.VMType, error) {
	var broken problems
	label, err := name(in.Name)
	broken.add(err)
	zone, err := findZone(ctx, tx, in.Zone)
	broken.add(err)
	t, err := resolveType(ctx, tx, in.Type, in.Performance)
	broken.add(err)
	tenancy, err := tenancyOf(in.Tenancy)
	broken.add(err)
	image, err := findImage(ctx, tx, in.Image)
	broken.add(err)
	broken.add(publicKey("ssh_key", in.SSHKey))
	broken.add(atMost("user_data", in.UserData, maxUserData))
	if err := broken.err(); err != nil {
		return db.VM{}, t, err
	}
	id, err := services.NewID[services.VMID](s.random)
	if err != nil {
		return db.VM{}, t, err
	}
	vm := db.VM{
		ID: id, Account: a.Account, Region: zone.Region, Zone: zone.ID, Storage: zone.Storage, Name: label, Tenancy: tenancy,
		Image: image, SSHKey: strings.TrimSpace(in.SSHKey), UserData: in.UserData,
		DesiredPower: services.PowerRunning, Power: services.PowerPending, CreatedAt: s.now(),
	}
	apply(&vm, t)
	return vm, t, nil
}

// apply writes a type's parts into a VM. A type that leaves the CPU generation
// open keeps the VM's.
func apply(vm *db.VM, t catalog.VMType) {
	vm.Type, vm.VCores, vm.MemoryMiB, vm.Performance, vm.Inference = t.Name, t.VCores, t.MemoryMiB, t.Performance, t.Inference()
	if t.Generation != "" {
		vm.Generation = t.Generation
	}
}

// problems collects the violations of several checks.
type problems struct {
	violations []services.Violation
	other      error
}

func (p *problems) add(err error) {
	if e, ok := services.AsError(err); ok {
		p.violations = append(p.violations, e.Violations...)
		return
	}
	if err != nil && p.other == nil {
		p.other = err
	}
}

func (p *problems) err() error {
	if p.other != nil {
		return p.other
	}
	if len(p.violations) > 0 {
		return &services.Error{Kind: services.KindInvalid, Violations: p.violations}
	}
	return nil
}

func resolveType(ctx context.Context, tx *db.Tx, typ string, performance catalog.Performance) (catalog.VMType, error) {
	if strings.TrimSpace(typ) == "" {
		return catalog.VMType{}, services.Invalid("type", services.CodeRequired, nil)
	}
	types, err := tx.Types(ctx)
	if err != nil {
		return catalog.VMType{}, err
	}
	return types.Resolve(typ, performance)
}

func tenancyOf(t catalog.Tenancy) (catalog.Tenancy, error) {
	if t == "" {
		return catalog.TenancyDefault, nil
	}
	if !t.Valid() {
		return t, services.NoneOf("tenancy", string(t), string(catalog.TenancyDefault), string(catalog.TenancyDedicated))
	}
	return t, nil
}

func findImage(ctx context.Context, tx *db.Tx, id string) (string, error) {
	images, err := tx.Images(ctx)
	if err != nil {
		return "", err
	}
	if id == "" && len(images) > 0 {
		return images[0].ID, nil
	}
	names := make([]string, 0, len(images))
	for _, m := range images {
		if m.ID == id {
			return id, nil
		}
		names = append(names, m.ID)
	}
	return "", services.NoneOf("image", id, names...)
}

// publicKey refuses what is not one SSH public key, a private key above all.
func publicKey(field, text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	if err := atMost(field, text, maxSSHKey); err != nil {
		return err
	}
	_, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil || len(rest) > 0 {
		return services.Invalid(field, services.CodeInvalidKey, nil)
	}
	return nil
}

func atMost(field, text string, limit int) error {
	if len(text) > limit {
		return services.Invalid(field, services.CodeTooLong, map[string]any{"Max": limit})
	}
	return nil
}

// placeNew finds the VM a host with room, and with free cards where its type
// has GPUs built in. A type that leaves the CPU generation open gets the host's.
func (s *Service) placeNew(ctx context.Context, tx *db.Tx, vm *db.VM, t catalog.VMType) ([]services.CardID, error) {
	if err := checkLimits(ctx, tx, vm.Account, vm.Region, growth{vcores: vm.VCores, memoryMiB: vm.MemoryMiB, vms: 1}); err != nil {
		return nil, err
	}
	if t.Inference() {
		if err := checkQuota(ctx, tx, vm.Account, vm.Region, t.GPUModel, t.GPUCount); err != nil {
			return nil, err
		}
	}
	rooms, err := tx.Rooms(ctx, *vm)
	if err != nil {
		return nil, err
	}
	for _, r := range rooms {
		fits, err := tx.LockRoom(ctx, *vm, r.Host)
		if err != nil {
			return nil, err
		}
		if !fits {
			continue
		}
		var cards []services.CardID
		if t.Inference() {
			if cards, err = tx.TakeCardsOnHost(ctx, r.Host, t.GPUModel, t.GPUCount); err != nil {
				return nil, err
			}
		}
		if len(cards) == t.GPUCount {
			vm.Host, vm.Generation = r.Host, r.Generation
			return cards, nil
		}
	}
	return nil, noRoom(*vm)
}

func (s *Service) create(ctx context.Context, tx *db.Tx, a services.Actor, vm db.VM, t catalog.VMType, cards []services.CardID) error {
	vm.DesiredPower = services.PowerStopped // until its first operation orders the start
	if err := tx.InsertVM(ctx, vm); err != nil {
		return err
	}
	data := map[string]any{"Type": vm.Type, "Zone": vm.Zone}
	if err := tx.InsertEvent(ctx, s.event(a, "vm.created", data), db.Subject{Account: vm.Account, VM: vm.ID, Host: vm.Host}); err != nil {
		return err
	}
	if err := s.buildIn(ctx, tx, a, vm, t, cards); err != nil {
		return err
	}
	return s.begin(ctx, tx, a, &vm, services.OpCreate, nil)
}

// buildIn gives a VM the GPUs that come with its type.
func (s *Service) buildIn(ctx context.Context, tx *db.Tx, a services.Actor, vm db.VM, t catalog.VMType, cards []services.CardID) error {
	ids := make([]services.GPUID, 0, len(cards))
	for i, card := range cards {
		id, err := services.NewID[services.GPUID](s.random)
		if err != nil {
			return err
		}
		g := db.GPU{
			ID: id, Account: vm.Account, Kind: services.GPUBuiltIn, Name: fmt.Sprintf("%.96s-%d", vm.Name, i), Model: t.GPUModel, Region: vm.Region,
			Zone: vm.Zone, Generation: vm.Generation, Card: card, VM: vm.ID, DeleteOnVMDeletion: true, StateSince: s.now(),
		}
		if err := tx.InsertGPU(ctx, g); err != nil {
			return err
		}
		if err := tx.InsertEvent(ctx, s.event(a, "gpu.built-in", map[string]any{"Model": g.Model}),
			db.Subject{Account: g.Account, GPU: id, VM: vm.ID, Card: card}); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	return tx.MarkUsed(ctx, ids)
}

type vmWrite struct {
	VM     services.VMID
	Doing  string
	Detail any
}

// DeleteVM ends a VM. Its GPUs are released or stay with the account, each as
// its own setting says; the host cleans up when it can, and until it confirms,
// what it still holds is not offered.
func (s *Service) DeleteVM(ctx context.Context, a services.Actor, id services.VMID, key string) error {
	_, err := s.once(ctx, a, key, vmWrite{VM: id, Doing: "delete"}, func(tx *db.Tx) (string, error) {
		vm, err := lockVM(ctx, tx, a, id)
		if err != nil {
			return "", err
		}
		return string(id), s.delete(ctx, tx, a, vm)
	})
	return err
}

// lockVM locks a VM of the account; a deleted one is wrong-state.
func lockVM(ctx context.Context, tx *db.Tx, a services.Actor, id services.VMID) (db.VM, error) {
	vm, err := tx.LockVM(ctx, a.Account, id)
	if services.KindOf(err) != services.KindNotFound {
		return vm, err
	}
	gone, missing := tx.AccountVM(ctx, a.Account, id)
	if missing != nil {
		return gone, missing
	}
	return gone, vmWrongState(gone, services.PowerAbsent)
}

func (s *Service) delete(ctx context.Context, tx *db.Tx, a services.Actor, vm db.VM) error {
	if op, open, err := tx.OpenOperation(ctx, vm.ID); err != nil {
		return err
	} else if open {
		if err := s.finish(ctx, tx, &op, services.OpCancelled, ReasonVMDeleted, ""); err != nil {
			return err
		}
	}
	gpus, err := tx.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	if err := s.leaveVM(ctx, tx, a, vm, gpus); err != nil {
		return err
	}
	now := s.now()
	vm.DesiredPower, vm.DeletedAt = services.PowerAbsent, &now
	if err := s.want(ctx, tx, &vm); err != nil {
		return err
	}
	if err := tx.Evict(ctx, vm.ID, vm.Host, false, vm.Revision, now); err != nil {
		return err
	}
	if err := tx.InsertEvent(ctx, s.event(a, "vm.deleted", nil), db.Subject{Account: vm.Account, VM: vm.ID}); err != nil {
		return err
	}
	return s.begin(ctx, tx, a, &vm, services.OpDelete, nil)
}

// leaveVM takes the GPUs of a VM that is deleted away from it.
func (s *Service) leaveVM(ctx context.Context, tx *db.Tx, a services.Actor, vm db.VM, gpus []db.GPU) error {
	builtIn, err := tx.ReleaseBuiltIn(ctx, vm.ID, s.now())
	if err != nil {
		return err
	}
	dirty := builtIn
	for _, g := range gpus {
		if g.Kind == services.GPUBuiltIn {
			continue
		}
		t := keepAfterVM
		if g.DeleteOnVMDeletion {
			t = releaseWithVM
			dirty = append(dirty, g.Card)
		}
		if err := s.move(ctx, tx, a, g, t, ""); err != nil {
			return err
		}
	}
	return clean(ctx, tx, dirty...)
}
