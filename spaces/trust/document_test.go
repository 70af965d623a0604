package trust_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

func TestStore(t *testing.T) {
	t.Parallel()
	tests := []struct {
		space        item.Space
		folder, file fs.FileMode
	}{
		{item.User, 0o700, 0o600},
		{item.Project, 0o755, 0o644},
	}
	for _, tt := range tests {
		t.Run(string(tt.space), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			friend := newKey(t, 2)
			doc, key, err := trust.ParseKey(friend.Public().PEM())
			if err != nil || !key.Equal(friend.Public()) {
				t.Fatalf("%+v, %v", doc, err)
			}
			doc.Owner = `ada "the first" \ Łódź`
			path, err := trust.Grant{Document: doc, By: h.own, At: noon}.Store(h.dir(tt.space), tt.space)
			if err != nil {
				t.Fatal(err)
			}
			assertMode(t, path, tt.file)
			assertMode(t, filepath.Dir(path), tt.folder)
			e := state(t, h.load(), tt.space, friend)
			if e.State != trust.Trusted || e.Owner != doc.Owner || e.Path != path || e.Version != doc.Version {
				t.Errorf("stored as %+v", e)
			}
			again := *doc
			again.Owner = "bob"
			if _, err := (trust.Grant{Document: &again, By: h.own, At: noon}).Store(h.dir(tt.space), tt.space); err != nil {
				t.Fatal(err)
			}
			if e := state(t, h.load(), tt.space, friend); e.Owner != "bob" {
				t.Errorf("stored again as %+v", e)
			}
			if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// A document that somebody else signed is taken over with the user's signature.
func TestStoreAForeignDocument(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	stranger := newKey(t, 2)
	path := h.vouch(item.Project, stranger, stranger)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc, _, err := trust.ParseKey(src)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (trust.Grant{Document: doc, By: h.own, At: noon}).Store(h.user, item.User); err != nil {
		t.Fatal(err)
	}
	keyring := h.load()
	if e := state(t, keyring, item.User, stranger); e.State != trust.Trusted || e.Owner != "owner of "+stranger.Fingerprint() {
		t.Errorf("%+v", e)
	}
}

func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	friend := newKey(t, 2)
	tests := []struct {
		name  string
		space item.Space
		do    func(h *house, doc *trust.Document)
		want  string
	}{
		{"system space", item.System, nil, "part of the program"},
		{"without owner", item.User, func(_ *house, doc *trust.Document) { doc.Owner = "" }, "owner is missing"},
		{"owner that cannot be printed", item.User, func(_ *house, doc *trust.Document) { doc.Owner = "a\x1b[2Jb" }, "cannot be printed"},
		{"endless owner", item.User, func(_ *house, doc *trust.Document) { doc.Owner = strings.Repeat("a", 2000) }, "longer than"},
		{"folder that leads out of the project", item.Project, func(h *house, _ *trust.Document) {
			config := filepath.Join(h.project, ".ai", "config")
			if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
				h.t.Fatal(err)
			}
			if err := os.Symlink(h.t.TempDir(), config); err != nil {
				h.t.Fatal(err)
			}
		}, "escapes"},
		{"folder that everybody can change", item.User, func(h *house, _ *trust.Document) { h.chmod(h.folder(item.User), 0o777) }, "chmod o-w"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			doc, _, err := trust.ParseKey(friend.Public().PEM())
			if err != nil {
				t.Fatal(err)
			}
			doc.Owner = "ada"
			if tt.do != nil {
				tt.do(h, doc)
			}
			_, err = trust.Grant{Document: doc, By: h.own, At: noon}.Store(h.dir(tt.space), tt.space)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestParseKeyAsShown: what "keys show" prints can be handed over as it is.
func TestParseKeyAsShown(t *testing.T) {
	t.Parallel()
	key := newKey(t, 2).Public()
	shown := "key       " + key.Fingerprint() + "\nowner     you\n\n" + string(key.PEM())
	if _, got, err := trust.ParseKey([]byte(shown)); err != nil || !got.Equal(key) {
		t.Errorf("%v, %v", got, err)
	}
	if _, _, err := trust.ParseKey([]byte(shown + string(key.PEM()))); err == nil || !strings.Contains(err.Error(), "more than one") {
		t.Errorf("two keys: %v", err)
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"":      "owner is missing",
		"hello": "not the TOML",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n": "private key",
		strings.Repeat("#", 17<<10):                                      "larger than",
	} {
		if _, _, err := trust.ParseKey([]byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one with %q", src, err, want)
		}
	}
}

func assertMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("mode of %s is %04o, want %04o", filepath.Base(path), got, want)
	}
}

// FuzzParseDocument: what is read can be signed, written and read again.
func FuzzParseDocument(f *testing.F) {
	key := newKey(f, 2)
	f.Add(document(f, key.Public(), "ada", key))
	f.Add([]byte("fingerprint = \"\"\nowner = 1\n"))
	f.Add([]byte("[public_key]\npem = '''\n-----BEGIN PUBLIC KEY-----\n'''"))
	f.Fuzz(func(t *testing.T, src []byte) {
		doc, public, err := trust.ParseDocument(src)
		if err != nil {
			return
		}
		path, err := trust.Grant{Document: doc, By: key, At: noon}.Store(t.TempDir(), item.User)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", src, err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		as := sign.Name{Kind: sign.KindTrustedKey, ID: public.Fingerprint()}
		if err := sign.Check(written, ".toml", as, key); err != nil {
			t.Error(err)
		}
		again, same, err := trust.ParseDocument(written)
		if err != nil || !same.Equal(public) || again.Owner != doc.Owner || again.Attestation != doc.Attestation || again.Version != doc.Version {
			t.Errorf("%+v reads back as %+v: %v", doc, again, err)
		}
	})
}

// FuzzVerify: only what a trusted key signed is good.
func FuzzVerify(f *testing.F) {
	h := newHouse(f)
	keyring := h.load()
	signed := attach([]byte(directiveText), ".md", h.own, noon)
	f.Add(signed, ".md")
	f.Add(bytes.ReplaceAll(signed, []byte("\n"), []byte("\r\n")), ".md")
	f.Add(attach([]byte("#!/bin/sh\necho\n"), ".sh", h.own, noon), ".sh")
	f.Fuzz(func(t *testing.T, content []byte, ext string) {
		for _, kind := range item.Kinds() {
			s := trust.Subject{Kind: kind, ID: "team/review", Space: item.Project, Ext: ext, Content: content}
			v := keyring.Verify(s)
			if v.Status.Good() != (sign.Check(content, ext, s.Name(), h.own) == nil) {
				t.Errorf("%q as %s%s: %+v", content, kind, ext, v)
			}
			if !v.Status.Good() && v.Detail == "" {
				t.Errorf("%s says nothing", v.Status)
			}
		}
	})
}
