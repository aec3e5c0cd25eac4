package locales_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/locales"
)

// pluralForms end a message; what is above them is its key.
var pluralForms = []string{"zero", "one", "two", "few", "many", "other"}

// texts reads all files of a language: key and plural form to text.
func texts(t *testing.T, language string) map[string]string {
	t.Helper()
	names, err := fs.Glob(locales.Files, "*."+language+".toml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files of %s: %v", language, err)
	}
	all := map[string]string{}
	for _, name := range names {
		body, err := fs.ReadFile(locales.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		if err := toml.Unmarshal(body, &tree); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		flatten(t, name, "", tree, all)
	}
	return all
}

func flatten(t *testing.T, file, prefix string, tree map[string]any, into map[string]string) {
	t.Helper()
	for name, v := range tree {
		switch v := v.(type) {
		case map[string]any:
			flatten(t, file, prefix+name+".", v, into)
		case string:
			if _, twice := into[prefix+name]; twice {
				t.Errorf("%s: %s%s is already in another file", file, prefix, name)
			}
			into[prefix+name] = v
		default:
			t.Errorf("%s: %s%s is no text", file, prefix, name)
		}
	}
}

// keys are the messages of a language without their plural forms.
func keys(all map[string]string) map[string]bool {
	out := map[string]bool{}
	for name := range all {
		parts := strings.Split(name, ".")
		if slices.Contains(pluralForms, parts[len(parts)-1]) {
			parts = parts[:len(parts)-1]
		}
		out[strings.Join(parts, ".")] = true
	}
	return out
}

var placeholder = regexp.MustCompile(`\.[A-Z][A-Za-z]*`)

func TestBothLanguagesSayTheSame(t *testing.T) {
	en, fr := texts(t, "en"), texts(t, "fr")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(en)), slices.Sorted(maps.Keys(fr))); diff != "" {
		t.Fatalf("keys differ (-en +fr):\n%s", diff)
	}
	for key, text := range en {
		a, b := mentions(text), mentions(fr[key])
		if !slices.Equal(a, b) {
			t.Errorf("%s: English mentions %v, French %v", key, a, b)
		}
		if strings.TrimSpace(text) == "" || strings.TrimSpace(fr[key]) == "" {
			t.Errorf("%s is empty", key)
		}
	}
}

func mentions(text string) []string {
	found := placeholder.FindAllString(strings.Join(regexp.MustCompile(`\{\{[^}]*\}\}`).FindAllString(text, -1), " "), -1)
	slices.Sort(found)
	return slices.Compact(found)
}

var (
	literal = regexp.MustCompile(`"([a-z][a-zA-Z0-9_.-]*)"`)
	direct  = regexp.MustCompile(`\bT\(ctx, "([^"]+)"(\s*\+)?`)
)

// sources are the views and view models, without generated code and tests.
func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		view := strings.HasSuffix(path, ".templ") || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_templ.go") && !strings.HasSuffix(path, "_test.go")
		if err != nil || d.IsDir() || !view {
			return err
		}
		body, err := os.ReadFile("../" + path)
		out[path] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryKeyThatIsUsedHasAText(t *testing.T) {
	known := keys(texts(t, "en"))
	for path, body := range sources(t) {
		for _, m := range direct.FindAllStringSubmatch(body, -1) {
			key, isPrefix := m[1], m[2] != ""
			if isPrefix && !hasPrefix(known, key) {
				t.Errorf("%s: no text begins with %s", path, key)
			}
			if !isPrefix && !known[key] {
				t.Errorf("%s: %s has no text", path, key)
			}
		}
	}
}

func TestEveryTextIsUsed(t *testing.T) {
	used, prefixes := map[string]bool{}, []string{}
	for _, body := range sources(t) {
		for _, m := range literal.FindAllStringSubmatch(body, -1) {
			if strings.HasSuffix(m[1], ".") {
				prefixes = append(prefixes, m[1])
			}
			used[m[1]] = true
		}
	}
	for key := range keys(texts(t, "en")) {
		byPrefix := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
		// Notices are named by whoever writes them: handlers.
		if !used[key] && !byPrefix && !strings.HasPrefix(key, "notice.") {
			t.Errorf("%s is not used", key)
		}
	}
}

func hasPrefix(known map[string]bool, prefix string) bool {
	for key := range known {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// TestEveryWordOfTheVocabularyHasAText covers the keys that views put together
// from what services answer.
func TestEveryWordOfTheVocabularyHasAText(t *testing.T) {
	var want []string
	add := func(prefix string, words ...any) {
		for _, w := range words {
			want = append(want, fmt.Sprint(prefix, w))
		}
	}
	for _, s := range services.GPUStates {
		add("state.", s)
	}
	add("power.", services.PowerPending, services.PowerStarting, services.PowerRunning, services.PowerStopping, services.PowerStopped, services.PowerAbsent)
	add("operation.", services.OpRunning, services.OpStuck, services.OpDone, services.OpFailed, services.OpCancelled)
	add("operation-kind.", services.OpCreate, services.OpStart, services.OpStop, services.OpReboot, services.OpStopStart, services.OpResize, services.OpDelete)
	add("role.", services.RoleOwner, services.RoleMember, services.RoleViewer)
	add("actor.", services.ActorConsole, services.ActorHost, services.ActorOperator)
	add("error.", services.CodeVMDedicated, services.CodeModelMismatch, services.CodeInferenceType, services.CodeZoneMismatch,
		services.CodeNoCardOnHost, services.CodeNoCapacity, services.CodeWrongState, services.CodeVMRunning,
		services.CodeInvalidType, services.CodeRequired, services.CodeInvalidValue, services.CodeTooLong, services.CodeNotOffered,
		services.CodeBadCredentials, services.CodeTooManyTries, services.CodeKeyReused, services.CodeBusy, services.CodeNotFound,
		services.CodeForbidden, services.CodeSignedOut, services.CodeSuspended, services.CodeMaintenance, services.CodeConfirm,
		services.CodeHeld, services.CodeTaken, services.CodeLastOwner, services.CodeStale,
		services.CodeInUse, services.CodeMisfits)
	add("error.quota-exceeded.", "gpus", services.LimitVCores, services.LimitMemory, services.LimitVMs)
	for _, c := range services.CardConditions {
		add("condition.", c)
	}
	for _, m := range services.HostModes {
		add("mode.", m)
	}
	for _, a := range services.CardActions {
		add("cards.action.", a)
		if a != services.CardForceRelease { // the event is the GPU's
			add("event.card.", a)
		}
	}
	add("error.vm-specs-mismatch.", services.LimitPerformance, services.LimitVCores, services.LimitMemory, services.LimitGeneration)
	known := keys(texts(t, "en"))
	for _, key := range want {
		if !known[key] {
			t.Errorf("%s has no text", key)
		}
	}
}
