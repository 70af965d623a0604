package trust_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// TestChain is about who vouches for whom.
func TestChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	type doc struct {
		space item.Space
		key   int
		by    int // 0: unsigned
	}
	const own = 1
	user, project := item.User, item.Project
	tests := []struct {
		name    string
		docs    []doc
		trusted []int // keys that count, besides the own one
		noOwn   bool
	}{
		{name: "nothing"},
		{name: "signed by the own key", docs: []doc{{user, 2, own}}, trusted: []int{2}},
		{name: "a chain, whatever the order of the files", docs: []doc{{user, 5, 4}, {user, 4, 3}, {user, 3, 2}, {user, 2, own}},
			trusted: []int{2, 3, 4, 5}},
		{name: "unsigned", docs: []doc{{user, 2, 0}}},
		{name: "signed by itself", docs: []doc{{user, 2, 2}}},
		{name: "two that sign each other", docs: []doc{{user, 2, 3}, {user, 3, 2}}},
		{name: "a circle of three", docs: []doc{{user, 2, 3}, {user, 3, 4}, {user, 4, 2}}},
		{name: "a circle that the own key opens", docs: []doc{{user, 2, 3}, {user, 3, 4}, {user, 4, own}}, trusted: []int{2, 3, 4}},
		{name: "a project's, signed by the own key", docs: []doc{{project, 2, own}}, trusted: []int{2}},
		{name: "a project's, signed by a key the user trusts", docs: []doc{{user, 2, own}, {project, 3, 2}}, trusted: []int{2, 3}},
		{name: "a project's, signed by itself", docs: []doc{{project, 2, 2}}},
		{name: "a project's two that sign each other", docs: []doc{{project, 2, 3}, {project, 3, 2}}},
		{name: "a project's, signed by a key of the project", docs: []doc{{project, 2, own}, {project, 3, 2}}, trusted: []int{2}},
		{name: "a user's, signed by a key of the project", docs: []doc{{project, 2, own}, {user, 3, 2}}, trusted: []int{2}},
		{name: "one key in both", docs: []doc{{project, 2, 2}, {user, 2, own}}, trusted: []int{2}},
		{name: "without own key", docs: []doc{{user, 2, own}, {project, 3, 2}, {user, own, own}}, noOwn: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			keys := []*sign.Key{nil, h.own}
			for n := 2; n <= 5; n++ {
				keys = append(keys, newKey(t, byte(n)))
			}
			for _, d := range tt.docs {
				h.vouch(d.space, keys[d.key], keys[d.by])
			}
			if tt.noOwn {
				h.own = nil
			}
			keyring := h.load()
			if p := keyring.Problems(); len(p) > 0 {
				t.Errorf("problems %+v", p)
			}
			for n, key := range keys[2:] {
				want := slices.Contains(tt.trusted, n+2)
				content := attach([]byte("text"), ".md", key, noon)
				v := keyring.Verify(trust.Subject{Kind: item.Directive, ID: "team/review", Space: item.User, Ext: ".md", Content: content})
				if v.Status.Good() != want {
					t.Errorf("key %d: %+v, want it trusted: %v", n+2, v, want)
				}
			}
			for _, e := range keyring.List() {
				if e.State == trust.Untrusted && e.Reason == "" || e.State == trust.Trusted && e.By == "" {
					t.Errorf("entry %+v does not say why", e)
				}
			}
		})
	}
}

// TestTrustIsReachability compares the chain with what it means: a key of the
// user's space counts when a path of signatures leads to it from the own key.
func TestTrustIsReachability(t *testing.T) {
	t.Parallel()
	const count = 6
	keys := make([]*sign.Key, count)
	for n := range keys {
		keys[n] = newKey(t, byte(n+1))
	}
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t)
		h.own = keys[0]
		by := rapid.SliceOfN(rapid.IntRange(0, count-1), count, count).Draw(rt, "signers")
		for n := 1; n < count; n++ {
			h.vouch(item.User, keys[n], keys[by[n]])
		}
		keyring := h.load()
		for n := 1; n < count; n++ {
			at := n
			for range count {
				at = by[at]
				if at == 0 {
					break
				}
			}
			want := trust.Untrusted
			if at == 0 {
				want = trust.Trusted
			}
			if e := state(t, keyring, item.User, keys[n]); e.State != want {
				rt.Fatalf("signers %v: key %d is %s (%s), want %s", by, n, e.State, e.Reason, want)
			}
		}
	})
}

func TestListSaysWhy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	friend, changed, stranger, forged := newKey(t, 2), newKey(t, 3), newKey(t, 4), newKey(t, 5)
	path := h.vouch(item.User, friend, h.own)
	text := string(document(t, changed.Public(), "ada", h.own))
	h.put(item.User, changed.Fingerprint()+".toml", []byte(strings.Replace(text, "ada", "bob", 1)))
	h.vouch(item.Project, stranger, stranger)
	text = string(document(t, forged.Public(), "eve", stranger))
	h.put(item.Project, forged.Fingerprint()+".toml",
		[]byte(strings.Replace(text, ":"+stranger.Fingerprint(), ":"+h.own.Fingerprint(), 1)))
	keyring := h.load()

	if own := keyring.List()[0]; own.State != trust.Own || own.Path != sign.PublicFile(h.user) || !own.Key.Equal(h.own.Public()) {
		t.Errorf("the own key is listed as %+v", own)
	}
	e := state(t, keyring, item.User, friend)
	if e.State != trust.Trusted || e.By != h.own.Fingerprint() || e.Path != path || e.Owner != "owner of "+friend.Fingerprint() || e.Version != "1.0.0" {
		t.Errorf("a trusted key is listed as %+v", e)
	}
	for key, want := range map[*sign.Key]string{
		changed:  "changed after it was signed",
		forged:   "not genuine",
		stranger: "trusted without this project",
	} {
		for _, e := range keyring.List() {
			if e.Fingerprint == key.Fingerprint() && (e.State != trust.Untrusted || !strings.Contains(e.Reason, want)) {
				t.Errorf("%s, want the reason %q: %+v", key.Fingerprint(), want, e)
			}
		}
	}
	if n := len(keyring.List()); n != 5 {
		t.Errorf("%d entries, want 5", n)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	friend := newKey(t, 2)
	h.vouch(item.User, friend, h.own)
	h.vouch(item.Project, friend, h.own)
	keyring := h.load()
	for _, digits := range []string{friend.Fingerprint(), friend.Fingerprint()[:6], strings.ToUpper(friend.Fingerprint())} {
		if found, err := keyring.Show(digits); err != nil || len(found) != 2 || found[0].Fingerprint != friend.Fingerprint() {
			t.Errorf("%s: %+v, %v", digits, found, err)
		}
	}
	for _, digits := range []string{"", "0123456789abcdef", friend.Fingerprint() + "0"} {
		if _, err := keyring.Show(digits); !errors.Is(err, trust.ErrUnknownKey) {
			t.Errorf("%q: error %v, want ErrUnknownKey", digits, err)
		}
	}
}

func TestShowAmbiguous(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	// Seventeen keys share a first digit for certain.
	first := map[byte][]string{}
	for n := byte(2); n < 20; n++ {
		key := newKey(t, n)
		h.vouch(item.User, key, h.own)
		first[key.Fingerprint()[0]] = append(first[key.Fingerprint()[0]], key.Fingerprint())
	}
	keyring := h.load()
	for digit, keys := range first {
		if _, err := keyring.Show(string(digit)); len(keys) > 1 && !errors.Is(err, trust.ErrAmbiguousKey) {
			t.Errorf("%c: error %v, want ErrAmbiguousKey", digit, err)
		}
	}
}

// TestProblems is about documents that are left out; the others still count.
func TestProblems(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	good, other := newKey(t, 2), newKey(t, 3)
	name := other.Fingerprint() + ".toml"
	tests := []struct {
		name   string
		do     func(h *house)
		reason string
		mend   string
	}{
		{"not TOML", func(h *house) { h.put(item.User, name, []byte("owner = \n")) }, "line 1", ""},
		{"wrong type", func(h *house) { h.put(item.User, name, []byte("owner = 1\n")) }, "not the TOML", ""},
		{"wrong PEM", func(h *house) {
			h.put(item.User, name, []byte("fingerprint=\"0\"\nowner=\"x\"\n[public_key]\npem=\"x\"\n"))
		}, "public_key.pem: no PEM block", ""},
		{"a private key", func(h *house) {
			h.put(item.User, name, []byte("fingerprint=\"0\"\nowner=\"x\"\n[public_key]\npem=\"\"\"\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n\"\"\"\n"))
		}, "this is a private key", ""},
		{"without owner", func(h *house) { h.put(item.User, name, document(t, other.Public(), "", h.own)) }, "owner is missing", ""},
		{"owner that writes to the terminal", func(h *house) {
			h.put(item.User, name, document(t, other.Public(), `x\u001b[2J`, h.own))
		}, "cannot be printed", ""},
		{"owner that turns text round", func(h *house) {
			h.put(item.User, name, document(t, other.Public(), "x\u202ey", h.own))
		}, "cannot be printed", ""},
		{"swapped key", func(h *house) {
			text := string(document(t, good.Public(), "x", nil))
			text = strings.Replace(text, string(good.Public().PEM()), string(other.Public().PEM()), 1)
			h.put(item.User, name, attach([]byte(text), ".toml", h.own, noon))
		}, "is not that of the key", ""},
		{"name of another key", func(h *house) {
			h.put(item.User, "0123456789abcdef.toml", document(t, other.Public(), "x", h.own))
		}, "its name must be " + name, ""},
		{"name that is no fingerprint", func(h *house) {
			h.put(item.User, "a\nb.toml", document(t, other.Public(), "x", h.own))
		}, `"a\nb.toml" is not named after a fingerprint`, ""},
		{"homoglyph in the name", func(h *house) {
			h.put(item.User, "а123456789abcdef.toml", document(t, other.Public(), "x", h.own))
		}, "is not named after a fingerprint", ""},
		{"oversized", func(h *house) {
			h.put(item.User, name, append(document(t, other.Public(), "x", h.own), make([]byte, 16<<10)...))
		}, "larger than 8192 bytes", ""},
		{"endless key", func(h *house) { h.put(item.User, name, []byte(strings.Repeat("a.", 100)+"b=1")) }, "100 dots", ""},
		{"deep arrays", func(h *house) { h.put(item.User, name, []byte("a="+strings.Repeat("[", 100))) }, "opens 100 brackets", ""},
		{"symbolic link out of the space", func(h *house) {
			elsewhere := filepath.Join(h.t.TempDir(), name)
			if err := os.WriteFile(elsewhere, document(t, other.Public(), "x", h.own), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, filepath.Join(h.folder(item.User), name)); err != nil {
				t.Fatal(err)
			}
		}, "a symbolic link", ""},
		{"folder", func(h *house) {
			if err := os.Mkdir(filepath.Join(h.folder(item.User), name), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file", ""},
		{"everybody can change it", func(h *house) { h.chmod(h.vouch(item.User, other, h.own), 0o606) }, "mode 0606", "chmod o-w "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.vouch(item.User, good, h.own)
			tt.do(h)
			keyring := h.load()
			problems := keyring.Problems()
			if len(problems) != 1 || !strings.Contains(problems[0].Reason, tt.reason) || problems[0].Space != item.User || problems[0].Path == "" {
				t.Fatalf("problems %+v, want one with %q", problems, tt.reason)
			}
			if !strings.HasPrefix(problems[0].Mend, tt.mend) || (tt.mend == "") != (problems[0].Mend == "") {
				t.Errorf("mended by %q, want %q", problems[0].Mend, tt.mend)
			}
			if e := state(t, keyring, item.User, good); e.State != trust.Trusted {
				t.Errorf("the good document does not count: %+v", e)
			}
			if _, err := keyring.Show(other.Fingerprint()); !errors.Is(err, trust.ErrUnknownKey) {
				t.Errorf("the bad document is listed: %v", err)
			}
		})
	}
}

func TestFolderProblems(t *testing.T) {
	t.Parallel()
	key := newKey(t, 2)
	tests := []struct {
		name, reason string
		do           func(h *house)
	}{
		{"everybody can change it", "run: chmod o-w", func(h *house) { h.chmod(h.folder(item.User), 0o707) }},
		{"link out of the space", "escapes", func(h *house) {
			dir := h.folder(item.User)
			elsewhere := h.t.TempDir()
			if err := os.Rename(dir, filepath.Join(elsewhere, "trusted")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(elsewhere, "trusted"), dir); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.vouch(item.User, key, h.own)
			tt.do(h)
			keyring := h.load()
			if p := keyring.Problems(); len(p) != 1 || !strings.Contains(p[0].Reason, tt.reason) {
				t.Errorf("problems %+v, want one with %q", p, tt.reason)
			}
			if n := len(keyring.List()); n != 1 {
				t.Errorf("%d keys, want the own one", n)
			}
		})
	}
}

func TestTooManyDocuments(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	for n := range 300 {
		h.put(item.Project, strings.Repeat("0", 13)+string([]byte{'a' + byte(n/100), '0' + byte(n/10%10), '0' + byte(n%10)})+".toml", nil)
	}
	if p := h.load().Problems(); len(p) != 257 || !strings.Contains(p[0].Reason, "300 documents") {
		t.Errorf("%d problems, the first %+v", len(p), p[0])
	}
}

// At home the user's space is the project: its documents are the user's.
func TestProjectAtHome(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := newKey(t, 2), newKey(t, 3)
	h.vouch(item.User, a, h.own)
	h.vouch(item.User, b, a)
	h.project = h.user
	keyring := h.load()
	if e := state(t, keyring, item.User, b); e.State != trust.Trusted || len(keyring.List()) != 3 {
		t.Errorf("%+v", keyring.List())
	}
}

// A key that the program ships counts, and vouches for others.
func TestSystemKeys(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	registry, author := newKey(t, 2), newKey(t, 3)
	name := "config/keys/trusted/" + registry.Fingerprint() + ".toml"
	h.system = fstest.MapFS{name: &fstest.MapFile{Data: document(t, registry.Public(), "registry", nil)}}
	h.vouch(item.Project, author, registry)
	h.own = nil
	keyring := h.load()
	if e := state(t, keyring, item.System, registry); e.State != trust.Trusted || e.Path != "system:"+name {
		t.Errorf("%+v", e)
	}
	if e := state(t, keyring, item.Project, author); e.State != trust.Trusted {
		t.Errorf("%+v", e)
	}
	passedOff := trust.Load(trust.Sources{Roots: resolve.Roots{System: h.system}})
	if e := state(t, passedOff, item.System, registry); e.State != trust.Untrusted {
		t.Errorf("a key that was not shipped counts: %+v", e)
	}
}
