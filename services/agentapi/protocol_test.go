package agentapi

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var example = regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```")

// TestExamplesOfTheProtocolAreTheTypes reads each example of the protocol's
// page into its type and back: no field may be unknown, missing or misspelt.
func TestExamplesOfTheProtocolAreTheTypes(t *testing.T) {
	page, err := os.ReadFile("../../docs/agent-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]any{
		"EnrolRequest": EnrolRequest{}, "RenewRequest": RenewRequest{}, "Certificate": Certificate{},
		"Desired": Desired{}, "Report": Report{}, "ReportAnswer": ReportAnswer{}, "Refusal": Refusal{},
	}
	seen := make(map[string]bool)
	for _, m := range example.FindAllSubmatch(page, -1) {
		name, text := string(m[1]), m[2]
		sample, known := types[name]
		if !known {
			t.Errorf("the page has an example of an unknown message %s", name)
			continue
		}
		seen[name] = true
		value := reflect.New(reflect.TypeOf(sample)).Interface()
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(value); err != nil {
			t.Errorf("example of %s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(generic(t, text), generic(t, encode(t, value))); diff != "" {
			t.Errorf("example of %s differs from its type (-page +type):\n%s", name, diff)
		}
	}
	for name := range types {
		if !seen[name] {
			t.Errorf("the page has no example of %s", name)
		}
	}
}

// TestCodesOfTheProtocolAreDescribed looks each code and path up on the page.
func TestCodesOfTheProtocolAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/agent-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		ProblemHeld, ProblemIdentity, ProblemGroup, ProblemInUse, ProblemBind,
		ProblemReset, ProblemStart, ProblemUnsupported,
		RefusalBadRequest, RefusalTokenUsed, RefusalTokenExpired, RefusalUnauthorized,
		RefusalRevoked, RefusalRevisionUnknown, RefusalTooLarge, RefusalUnavailable,
		FindingIOMMUOff, FindingVFIOMissing, FindingNouveauBound, ReasonStale,
		PowerStarting, PowerRunning, PowerStopping, PowerStopped, PowerAbsent,
		StoppedByConsole, StoppedByGuest, StoppedByCrash,
	} {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("the page does not describe %q", word)
		}
	}
	for _, path := range []string{PathEnrol, PathRenew, PathReport, PathDesired} {
		if !strings.Contains(string(page), path) {
			t.Errorf("the page does not describe %s", path)
		}
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func generic(t *testing.T, text []byte) any {
	t.Helper()
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
