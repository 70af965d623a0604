package trust_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// seed is a reader of one fixed byte, for keys that tests can tell apart.
type seed byte

func (s seed) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s)
	}
	return len(p), nil
}

func newKey(t testing.TB, n byte) *sign.Key {
	t.Helper()
	key, err := sign.Generate(t.TempDir(), false, seed(n))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// house is a project and a user space with the own key in hand.
type house struct {
	t             testing.TB
	project, user string
	system        fs.FS
	own           *sign.Key
}

func newHouse(t testing.TB) *house {
	return &house{t: t, project: t.TempDir(), user: t.TempDir(), system: fstest.MapFS{}, own: newKey(t, 1)}
}

func (h *house) dir(space item.Space) string {
	if space == item.Project {
		return h.project
	}
	return h.user
}

// load reads the keys. The files of the system space are those that were shipped.
func (h *house) load() *trust.Keyring {
	from := trust.Sources{Roots: resolve.Roots{Project: h.project, User: h.user, System: h.system}}
	if h.own != nil {
		from.Own = h.own.Public()
	}
	from.Shipped = func(path string, content []byte) bool {
		shipped, err := fs.ReadFile(h.system, path)
		return err == nil && string(shipped) == string(content)
	}
	return trust.Load(from)
}

// document is the text about a key, unsigned without by.
func document(t testing.TB, key *sign.PublicKey, owner string, by *sign.Key) []byte {
	t.Helper()
	text := "fingerprint = \"" + key.Fingerprint() + "\"\nowner = \"" + owner + "\"\nversion = \"1.0.0\"\nattestation = \"\"\n\n" +
		"[public_key]\npem = \"\"\"\n" + string(key.PEM()) + "\"\"\"\n"
	if by == nil {
		return []byte(text)
	}
	return attachAs([]byte(text), ".toml", sign.Name{Kind: sign.KindTrustedKey, ID: key.Fingerprint()}, by, noon)
}

// review is what most tests sign: the subject of directiveOf and its like.
var review = sign.Name{Kind: "directive", ID: "team/review"}

// attach signs a file as review.
func attach(src []byte, ext string, k *sign.Key, at time.Time) []byte {
	return attachAs(src, ext, review, k, at)
}

func attachAs(src []byte, ext string, as sign.Name, k *sign.Key, at time.Time) []byte {
	signed, err := sign.Attach(src, ext, as, k, at)
	if err != nil {
		panic(err) // only about the name, which the tests choose
	}
	return signed
}

// older signs a file the way earlier versions and the original system do: with
// the hash of the part, for no name.
func older(text, part, ext string, k *sign.Key) []byte {
	outer, _ := sign.Split(attach([]byte(text), ext, k, noon), ext)
	inner, _ := sign.Split(attach([]byte(part), ".md", k, noon), ".md")
	line := sign.Signature{Time: inner.Time, Hash: inner.Hash, Sig: k.Sign(inner.Hash), Fingerprint: k.Fingerprint()}
	return bytes.Replace(attach([]byte(text), ext, k, noon), []byte(outer.String()), []byte(line.String()), 1)
}

// vouch puts a document about a key into a space and returns its path.
func (h *house) vouch(space item.Space, key *sign.Key, by *sign.Key) string {
	h.t.Helper()
	return h.put(space, key.Fingerprint()+".toml", document(h.t, key.Public(), "owner of "+key.Fingerprint(), by))
}

func (h *house) put(space item.Space, name string, content []byte) string {
	h.t.Helper()
	path := filepath.Join(h.folder(space), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// folder makes the folder of trusted keys.
func (h *house) folder(space item.Space) string {
	h.t.Helper()
	dir := filepath.Join(h.dir(space), ".ai", "config", "keys", "trusted")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	return dir
}

func (h *house) chmod(path string, mode fs.FileMode) {
	h.t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		h.t.Fatal(err)
	}
}

// state is that of the key in a space.
func state(t testing.TB, keyring *trust.Keyring, space item.Space, key *sign.Key) trust.Entry {
	t.Helper()
	for _, e := range keyring.List() {
		if e.Space == space && e.Fingerprint == key.Fingerprint() {
			return e
		}
	}
	t.Fatalf("key %s is not listed in the %s space: %+v", key.Fingerprint(), space, keyring.List())
	return trust.Entry{}
}
