package i18n

import (
	"context"
	"testing"
	"time"
)

func in(l Locale) context.Context { return With(context.Background(), l) }

func TestMatchTakesTheReadersLanguage(t *testing.T) {
	for header, want := range map[string]Locale{
		"": English, "fr": French, "fr-CA,fr;q=0.9,en;q=0.8": French, "en-GB,fr;q=0.5": English,
		"de": English, "de,fr;q=0.5": French, "bad;;": English,
	} {
		if got := Match(header); got != want {
			t.Errorf("Match(%q) = %s, want %s", header, got, want)
		}
	}
}

func TestTextsAreInTheContextsLanguage(t *testing.T) {
	if got := T(in(French), "state.attached"); got != "attaché" {
		t.Errorf("French: %q", got)
	}
	if got := T(context.Background(), "state.attached"); got != "attached" {
		t.Errorf("without a language: %q", got)
	}
	if got := T(in(Locale("xx")), "state.attached"); got != "attached" {
		t.Errorf("unknown language: %q", got)
	}
}

func TestPluralsFollowTheLanguage(t *testing.T) {
	tests := []struct {
		l    Locale
		n    int
		want string
	}{
		{English, 0, "0 days"}, {English, 1, "1 day"}, {English, 2, "2 days"},
		{French, 0, "0 jour"}, {French, 1, "1 jour"}, {French, 2, "2 jours"},
	}
	for _, tt := range tests {
		if got := T(in(tt.l), "time.days", "Count", tt.n); got != tt.want {
			t.Errorf("%s, %d: %q, want %q", tt.l, tt.n, got, tt.want)
		}
	}
}

func TestNumbersAndSizes(t *testing.T) {
	tests := []struct{ got, want string }{
		{Number(in(English), 12345), "12,345"},
		{Number(in(French), 12345), "12\u00a0345"},
		{GiB(in(English), 512), "0.5 GiB"},
		{GiB(in(French), 512), "0,5 Gio"},
		{GiB(in(English), 256*1024), "256 GiB"},
		{Percent(in(English), 1, 4), "25%"},
		{Percent(in(English), 1, 0), "0%"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	tests := []struct{ got, want string }{
		{DateTime(in(English), at), "3 Feb 2025, 04:05"},
		{DateTime(in(French), at), "3 févr. 2025 à 04:05"},
		{Clock(at.In(time.FixedZone("east", 7200))), "04:05:06"},
		{Duration(in(English), -time.Second), "0 sec"},
		{Duration(in(English), 59*time.Second), "59 sec"},
		{Duration(in(English), 90*time.Minute), "1 hr"},
		{Duration(in(French), 49*time.Hour), "2 jours"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestMissingArgumentsLeaveNoTrace(t *testing.T) {
	if got := T(in(English), "error.not-offered", "Model", "nvidia-l40"); got != "nvidia-l40 is not offered in ." {
		t.Errorf("%q", got)
	}
	if got := T(in(English), "no.such.key"); got != "no.such.key" {
		t.Errorf("a key without text: %q", got)
	}
}
