package hostagent_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/services/hostagent"
)

func TestEnrolledAgentKeepsItsCertificate(t *testing.T) {
	b := newBench(t)
	b.start()
	b.console.awaitNext(1)
	b.stop()
	checkPrivate(t, b.opts.StateDir)

	b.opts.Token = ""
	b.start()
	b.console.awaitNext(1)
	b.console.set(func(c *console) {
		if c.issued != 1 || len(c.serials) != 1 {
			t.Errorf("%d certificates issued, reports came with %v; want one", c.issued, c.serials)
		}
	})
}

func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) == 0 {
		t.Error("the state folder is empty")
	}
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode().Perm())
		}
	}
}

func TestAgentRefusesAnotherConsole(t *testing.T) {
	other, _ := newAuthority(t)
	b := newBench(t)
	b.opts.Token = tokenFor(other)
	if err := b.runToEnd(); !errors.Is(err, hostagent.ErrPin) {
		t.Errorf("error %v, want ErrPin", err)
	}
	b.console.set(func(c *console) {
		if c.enrolled {
			t.Error("the token was shown to the wrong console")
		}
	})
}

func TestAgentRefusesCertificateForAnotherHost(t *testing.T) {
	b := newBench(t)
	b.console.TLS.Certificates = b.console.tlsFor(net.IPv4(192, 0, 2, 1)).Certificates
	var log recorder
	b.opts.Logger = log.logger()
	b.start()
	log.await(t, "enrolment failed", 1)
	b.stop()
	if !strings.Contains(log.text(), "192.0.2.1") {
		t.Errorf("the log does not say for which host the certificate is: %s", log.text())
	}
	b.console.set(func(c *console) {
		if c.enrolled {
			t.Error("the token was shown to the wrong host")
		}
	})
}

func TestTokenThatCanNotWorkEndsTheAgent(t *testing.T) {
	good := newConsole(t).token()
	for name, token := range map[string]string{
		"missing":         "",
		"of another form": "berth-enrol-v2" + strings.TrimPrefix(good, "berth-enrol-v1"),
		"cut short":       good[:len(good)-1],
		"unknown":         "",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if name == "unknown" {
				token = strings.Replace(b.console.token(), secret, secret+"x", 1)
			}
			b.opts.Token = token
			if err := b.runToEnd(); !errors.Is(err, hostagent.ErrToken) {
				t.Errorf("error %v, want ErrToken", err)
			}
		})
	}
}

func TestUsedTokenEnrolsNoSecondAgent(t *testing.T) {
	b := newBench(t)
	b.start()
	b.console.awaitNext(1)
	b.stop()
	b.opts.StateDir = filepath.Join(t.TempDir(), "second")
	if err := b.runToEnd(); !errors.Is(err, hostagent.ErrToken) {
		t.Errorf("error %v, want ErrToken", err)
	}
}

func TestEnrolmentWhoseAnswerIsLostIsRepeated(t *testing.T) {
	b := newBench(t)
	b.console.dropEnrols = 2
	b.start()
	b.console.awaitNext(1)
}

func TestCertificateIsRenewedWhenAThirdOfItsLifeIsLeft(t *testing.T) {
	b := newBench(t)
	b.console.age, b.console.life = 21*time.Second, 10*time.Second
	b.start()
	second := func(c *console) bool { return len(c.serials) > 0 && c.serials[len(c.serials)-1] == "102" }
	b.console.await("a report with the second certificate", second)
	b.stop()
	b.opts.Token = ""
	b.start()
	b.console.awaitNext(1)
	b.console.set(func(c *console) {
		if c.issued != 2 || !second(c) {
			t.Errorf("%d certificates issued, reports came with %v; want the second kept", c.issued, c.serials)
		}
	})
}

func TestExpiredCertificateIsReplacedWithAToken(t *testing.T) {
	b := newBench(t)
	b.console.age, b.console.life = time.Minute, 20*time.Minute
	b.start()
	b.console.awaitNext(1)
	b.stop()
	b.console.set(func(c *console) { c.enrolled, c.life = false, 3*time.Hour })
	b.opts.Now = func() time.Time { return time.Now().Add(30 * time.Minute) }
	b.start()
	b.console.await("a report with a new certificate", func(c *console) bool { return len(c.serials) == 2 })
}
