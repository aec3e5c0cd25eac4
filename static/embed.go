// Package static holds the files that browsers fetch: style sheet, scripts,
// fonts. They are built by npm (see package.json) and embedded, so that the
// console is one binary.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
	"sync"
)

// Prefix is where Handler expects to be mounted; every URL of Path starts
// with it.
const Prefix = "/static/"

//go:embed all:dist
var built embed.FS

// Files are the built files, named as in "css/app.css". It is empty in a
// checkout that was never built.
var Files = sub(built, "dist")

func sub(parent fs.FS, dir string) fs.FS {
	child, err := fs.Sub(parent, dir)
	if err != nil {
		panic("static: " + err.Error()) // the folder's name is a constant
	}
	return child
}

var versions sync.Map // file name → the version string, "" when there is no such file

// Path is the URL of a built file, with a version made from its content: a
// browser may keep what it got under that URL for good. The URL of a file
// that does not exist carries no version.
func Path(name string) string {
	if v := version(name); v != "" {
		return Prefix + name + "?v=" + v
	}
	return Prefix + name
}

func version(name string) string {
	if v, ok := versions.Load(name); ok {
		return v.(string)
	}
	body, err := fs.ReadFile(Files, name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(body)
	v := hex.EncodeToString(sum[:6])
	versions.Store(name, v)
	return v
}

// Handler serves the built files under Prefix. What is asked for by its
// present version may be kept for good; all else is to be revalidated, which
// costs a request without a body. Folders and dot files answer 404.
func Handler() http.Handler {
	return http.StripPrefix(Prefix, http.HandlerFunc(serve))
}

func serve(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path
	v := version(name)
	if v == "" || strings.HasPrefix(name, ".") {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("ETag", `"`+v+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == v {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.HasSuffix(name, ".woff2") {
		h.Set("Content-Type", "font/woff2") // unknown to Go, and minimal systems have no MIME table
	}
	http.ServeFileFS(w, r, Files, name)
}
