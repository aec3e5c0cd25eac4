package hostagent

import (
	"testing"
	"time"

	"berth/services/agentapi"
)

func TestNextStepOfAVM(t *testing.T) {
	const id = "i-00000001"
	stopped := func(by string, run int64, devices ...string) *agentapi.VMReport {
		return &agentapi.VMReport{ID: id, Power: agentapi.PowerStopped, StoppedBy: by, Run: run, Devices: devices}
	}
	in := func(power string, run, reboots int64) *agentapi.VMReport {
		return &agentapi.VMReport{ID: id, Power: power, Run: run, Reboots: reboots}
	}
	want := func(power string, run, reboots int64, devices ...string) agentapi.DesiredVM {
		w := agentapi.DesiredVM{ID: id, Power: power, Run: run, Reboots: reboots}
		for _, key := range devices {
			w.Devices = append(w.Devices, agentapi.Device{Key: key})
		}
		return w
	}
	moved := want(agentapi.PowerAbsent, 0, 0)
	moved.KeepDisk = true
	larger := want(agentapi.PowerStopped, 0, 0)
	larger.MemoryMiB = 1

	for name, c := range map[string]struct {
		want agentapi.DesiredVM
		have *agentapi.VMReport
		next action
	}{
		"one that there is not is made":                {want(agentapi.PowerStopped, 0, 0, "a"), nil, actDefine},
		"a new one is started":                         {want(agentapi.PowerRunning, 1, 0), stopped("", 0), actStart},
		"a new one gets its cards first":               {want(agentapi.PowerRunning, 1, 0, "a"), stopped("", 0), actApply},
		"cards in another order are the same":          {want(agentapi.PowerStopped, 1, 0, "a", "b"), stopped("", 0, "b", "a"), actNone},
		"another size is applied":                      {larger, stopped("", 0), actApply},
		"stopped by the guest it stays so":             {want(agentapi.PowerRunning, 1, 0), stopped("guest", 1), actNone},
		"crashed it stays so":                          {want(agentapi.PowerRunning, 1, 0), stopped("crash", 1), actNone},
		"a larger run starts it":                       {want(agentapi.PowerRunning, 2, 0), stopped("guest", 1), actStart},
		"a stop of the console can be taken back":      {want(agentapi.PowerRunning, 1, 0), stopped("console", 1), actStart},
		"stopped by the guest it still gets cards":     {want(agentapi.PowerRunning, 1, 0, "a"), stopped("guest", 1), actApply},
		"running it keeps its cards":                   {want(agentapi.PowerRunning, 1, 0, "a"), in(agentapi.PowerRunning, 1, 0), actNone},
		"running it is stopped":                        {want(agentapi.PowerStopped, 1, 0), in(agentapi.PowerRunning, 1, 0), actStop},
		"running it takes over a larger run":           {want(agentapi.PowerRunning, 2, 0), in(agentapi.PowerRunning, 1, 0), actAdopt},
		"running it is rebooted":                       {want(agentapi.PowerRunning, 1, 2), in(agentapi.PowerRunning, 1, 1), actReboot},
		"rebooted more often than wanted it is left":   {want(agentapi.PowerRunning, 1, 1), in(agentapi.PowerRunning, 1, 2), actNone},
		"stopped it is not rebooted":                   {want(agentapi.PowerStopped, 1, 2), stopped("console", 1), actNone},
		"starting it is waited for":                    {want(agentapi.PowerRunning, 1, 0), in(agentapi.PowerStarting, 0, 0), actWait},
		"starting it can be stopped":                   {want(agentapi.PowerStopped, 1, 0), in(agentapi.PowerStarting, 0, 0), actStop},
		"stopping it is waited for before a start":     {want(agentapi.PowerRunning, 2, 0), in(agentapi.PowerStopping, 1, 0), actWait},
		"a stop that was begun is seen to its end":     {want(agentapi.PowerStopped, 1, 0), in(agentapi.PowerStopping, 1, 0), actStop},
		"deleted it is turned off":                     {want(agentapi.PowerAbsent, 1, 0), in(agentapi.PowerRunning, 1, 0), actKill},
		"deleted while it starts it is turned off":     {want(agentapi.PowerAbsent, 1, 0), in(agentapi.PowerStarting, 1, 0), actKill},
		"moving it shuts down":                         {moved, in(agentapi.PowerRunning, 1, 0), actStop},
		"deleted and stopped it is removed":            {want(agentapi.PowerAbsent, 1, 0), stopped("guest", 1, "a"), actRemove},
		"deleted and removed there is nothing to do":   {want(agentapi.PowerAbsent, 1, 0), nil, actNone},
		"in a state that nobody knows it is let alone": {want(agentapi.PowerRunning, 1, 0), in("paused", 0, 0), actWait},
	} {
		t.Run(name, func(t *testing.T) {
			var seen Inspection
			if c.have != nil {
				seen.Host.VMs = []agentapi.VMReport{*c.have}
			}
			if next := nextForVM(c.want, seen); next != c.next {
				t.Errorf("next step is %q, want %q", next, c.next)
			}
			seen.Partial = true
			if next := nextForVM(c.want, seen); c.have == nil && next != actWait {
				t.Errorf("not seen, the next step is %q, want to wait", next)
			}
		})
	}
}

func TestNextStepOfACard(t *testing.T) {
	for name, c := range map[string]struct {
		cleaned, failed, order int64
		gone, partial          bool
		next                   action
	}{
		"no order":                   {next: actNone},
		"a new order":                {cleaned: 1, order: 2, next: actClean},
		"one that is done":           {cleaned: 2, order: 2, next: actNone},
		"one that failed":            {cleaned: 1, failed: 2, order: 2, next: actNone},
		"one after a failure":        {failed: 2, order: 3, next: actClean},
		"of a card that is gone":     {order: 1, gone: true, next: actNone},
		"of a card that is not seen": {order: 1, gone: true, partial: true, next: actWait},
	} {
		t.Run(name, func(t *testing.T) {
			in := Inspection{Partial: c.partial}
			if !c.gone {
				in.Host.Cards = []agentapi.CardReport{{Key: "k", CleanedOrder: c.cleaned, FailedOrder: c.failed}}
			}
			if next := nextForCard(agentapi.DesiredCard{Key: "k", CleanOrder: c.order}, in); next != c.next {
				t.Errorf("next step is %q, want %q", next, c.next)
			}
		})
	}
}

func TestBackoffDoublesUpToItsMaximumAndIsSpread(t *testing.T) {
	o := Options{RetryMin: 100 * time.Millisecond, RetryMax: time.Second}
	for failures, milliseconds := range map[int]int{1: 100, 2: 200, 3: 400, 4: 800, 5: 1000, 17: 1000, 99: 1000} {
		want := time.Duration(milliseconds) * time.Millisecond
		for jitter, at := range map[float64]time.Duration{0: want / 2, 0.5: want * 3 / 4} {
			o.Jitter = func() float64 { return jitter }
			if got := o.backoff(failures); got != at {
				t.Errorf("after %d failures with jitter %v: %v, want %v", failures, jitter, got, at)
			}
		}
	}
}

func TestOptionsThatCanNotWorkAreRefused(t *testing.T) {
	good := Options{Console: "https://console.example:8443", StateDir: "x", Driver: newObliging()}
	if _, err := good.withDefaults(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Options){
		"no driver":    func(o *Options) { o.Driver = nil },
		"no folder":    func(o *Options) { o.StateDir = "" },
		"no console":   func(o *Options) { o.Console = "" },
		"plain http":   func(o *Options) { o.Console = "http://console.example" },
		"console path": func(o *Options) { o.Console = "/agent" },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			spoil(&o)
			if _, err := o.withDefaults(); err == nil {
				t.Error("no error")
			}
		})
	}
}
