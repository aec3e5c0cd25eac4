// Package i18n puts the console's texts, dates and numbers into the language
// of whoever looks at them. The language travels in the context, so that any
// view can translate.
package i18n

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/BurntSushi/toml"
	goi18n "github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"

	"berth/web/locales"
)

// Locale is a language of the console, as in the lang attribute.
type Locale string

// The languages. English is the first, for whoever speaks neither.
const (
	English Locale = "en"
	French  Locale = "fr"
)

// Locales lists the languages in the order that switches show them.
var Locales = []Locale{English, French}

// Valid reports whether l is one of the languages.
func (l Locale) Valid() bool { return l == English || l == French }

// Name is what the language calls itself.
func (l Locale) Name() string {
	if l == French {
		return "Français"
	}
	return "English"
}

func (l Locale) tag() language.Tag {
	if l == French {
		return language.French
	}
	return language.English
}

var localizers = load(locales.Files)

// load reads the embedded message files. A file that does not parse is an
// error of the build, found by the first test that imports the package.
func load(files fs.FS) map[Locale]*goi18n.Localizer {
	bundle := goi18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	out := map[Locale]*goi18n.Localizer{}
	names, err := fs.Glob(files, "*.toml")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("i18n: no message files: %v", err))
	}
	for _, name := range names {
		if _, err := bundle.LoadMessageFileFS(files, name); err != nil {
			panic(fmt.Sprintf("i18n: load %s: %v", name, err))
		}
	}
	for _, l := range Locales {
		out[l] = goi18n.NewLocalizer(bundle, string(l))
	}
	return out
}

var matcher = language.NewMatcher([]language.Tag{language.English, language.French})

// Match gives the language that suits an Accept-Language header best.
func Match(header string) Locale {
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil || len(tags) == 0 {
		return English
	}
	_, i, _ := matcher.Match(tags...)
	return Locales[i]
}

type contextKey struct{}

// With returns a context whose texts are in l.
func With(ctx context.Context, l Locale) context.Context {
	return context.WithValue(ctx, contextKey{}, l)
}

// From gives the context's language, English where none was set.
func From(ctx context.Context) Locale {
	if l, ok := ctx.Value(contextKey{}).(Locale); ok && l.Valid() {
		return l
	}
	return English
}

// T is the text of key. args are names and values in turn, which the text
// mentions as {{.Name}}; whole numbers are written as the language writes
// them, and one named Count chooses the plural form.
//
//	i18n.T(ctx, "time.days", "Count", 3)
//
// A key without a text comes back as it is: tests keep that from happening.
func T(ctx context.Context, key string, args ...any) string {
	return Text(ctx, key, Args(args...))
}

// Args makes the arguments of a text from names and values in turn.
func Args(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// Text is T with its arguments as a map, e.g. those of a services.Violation.
func Text(ctx context.Context, key string, args map[string]any) string {
	text, ok := find(ctx, key, args)
	if !ok {
		return key
	}
	return text
}

// Has reports whether key has a text.
func Has(ctx context.Context, key string) bool {
	_, ok := find(ctx, key, nil)
	return ok
}

func find(ctx context.Context, key string, args map[string]any) (string, bool) {
	config := &goi18n.LocalizeConfig{MessageID: key, TemplateData: shown(ctx, args)}
	if n, ok := count(args["Count"]); ok {
		config.PluralCount = n
	}
	text, err := localizers[From(ctx)].Localize(config)
	return strings.ReplaceAll(text, "<no value>", ""), err == nil || text != ""
}

func shown(ctx context.Context, args map[string]any) map[string]any {
	out := make(map[string]any, len(args))
	for name, v := range args {
		if n, ok := count(v); ok {
			out[name] = Number(ctx, n)
			continue
		}
		out[name] = v
	}
	return out
}

// count reads whole numbers, also those that went through JSON.
func count(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case int64:
		return int(n), true
	case float64:
		if n == float64(int(n)) {
			return int(n), true
		}
	}
	return 0, false
}
