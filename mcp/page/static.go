package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

// files are what the page is made of.
//
//go:embed static
var files embed.FS

// contentTypes by extension: those of the system could be any.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",
	".ico":  "image/x-icon",
}

// contentPolicy lets the page run its own modules and nothing else: no inline code,
// no text that becomes markup, no other host, no frame around it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// protect sets the headers that every answer has.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
}

// asset is a file of the page.
type asset struct {
	content     []byte
	contentType string
	etag        string
}

// assets are the files by name, read when the first is asked for.
var assets = sync.OnceValues(func() (map[string]asset, error) {
	found := map[string]asset{}
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		contentType, served := contentTypes[path.Ext(name)]
		if err != nil || d.IsDir() || !served {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		found[strings.TrimPrefix(name, "static/")] = asset{content, contentType, `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	return found, err
})

// IsPath reports whether a path is the page's.
func IsPath(p string) bool {
	return p == "/" || p == "/ui" || strings.HasPrefix(p, "/ui/") || p == "/favicon.ico"
}

// serveFile serves a file of the page. The browser keeps it and asks each time whether it
// is still the same: another version of the program has another.
func serveFile(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "files of the page are read with GET", http.StatusMethodNotAllowed)
		return
	}
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/ui"), "/")
	if name == "" {
		name = "index.html"
	}
	all, err := assets()
	file, known := all[name]
	if err != nil || !known {
		http.Error(w, "the page has no such file", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", file.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), file.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(file.content) // of a HEAD the server sends the headers alone
}
