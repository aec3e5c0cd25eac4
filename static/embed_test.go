package static

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func withFiles(t *testing.T, files fstest.MapFS) {
	t.Helper()
	before := Files
	Files = files
	versions.Clear()
	t.Cleanup(func() {
		Files = before
		versions.Clear()
	})
}

func get(target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestPathChangesWithContentOnly(t *testing.T) {
	withFiles(t, fstest.MapFS{"css/app.css": {Data: []byte("a{}")}})
	first := Path("css/app.css")
	if !strings.HasPrefix(first, "/static/css/app.css?v=") {
		t.Fatalf("Path = %q, want a version", first)
	}
	if again := Path("css/app.css"); again != first {
		t.Errorf("Path gave %q, then %q for the same content", first, again)
	}
	withFiles(t, fstest.MapFS{"css/app.css": {Data: []byte("b{}")}})
	if other := Path("css/app.css"); other == first {
		t.Errorf("Path stays %q though the content changed", other)
	}
}

func TestPathOfMissingFileHasNoVersion(t *testing.T) {
	withFiles(t, fstest.MapFS{})
	if got := Path("css/app.css"); got != "/static/css/app.css" {
		t.Errorf("Path = %q", got)
	}
}

func TestHandlerAnswers(t *testing.T) {
	withFiles(t, fstest.MapFS{
		".keep":             {},
		"css/app.css":       {Data: []byte("a{}")},
		"fonts/inter.woff2": {Data: []byte("wOF2")},
	})
	current := Path("css/app.css")
	tests := []struct {
		name, target        string
		code                int
		cache, contentTypes string
	}{
		{"the present version may be kept for good", current, 200, "public, max-age=31536000, immutable", "text/css"},
		{"an older version is revalidated", "/static/css/app.css?v=0", 200, "no-cache", "text/css"},
		{"no version is revalidated", "/static/css/app.css", 200, "no-cache", "text/css"},
		{"fonts have their type", "/static/fonts/inter.woff2", 200, "no-cache", "font/woff2"},
		{"a folder is not listed", "/static/css/", 404, "", "text/plain"},
		{"a missing file", "/static/css/none.css", 404, "", "text/plain"},
		{"a dot file", "/static/.keep", 404, "", "text/plain"},
		{"no way out of the folder", "/static/../embed.go", 404, "", "text/plain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := get(tt.target)
			if w.Code != tt.code {
				t.Errorf("status %d, want %d", w.Code, tt.code)
			}
			if got := w.Header().Get("Cache-Control"); got != tt.cache {
				t.Errorf("Cache-Control %q, want %q", got, tt.cache)
			}
			if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, tt.contentTypes) {
				t.Errorf("Content-Type %q, want %q", got, tt.contentTypes)
			}
		})
	}
}

func TestHandlerRevalidatesWithoutBody(t *testing.T) {
	withFiles(t, fstest.MapFS{"js/app.js": {Data: []byte("1")}})
	tag := get("/static/js/app.js").Header().Get("ETag")
	w := get("/static/js/app.js", "If-None-Match", tag)
	if w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("status %d with %d bytes, want 304 without a body", w.Code, w.Body.Len())
	}
}
