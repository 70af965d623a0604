package snapshot_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot/snapshottest"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

const here = "0123456789abcdef"

func newSeal(t testing.TB, at string) *place.Seal {
	t.Helper()
	key, err := sign.Generate(t.TempDir(), false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return place.NewSeal(key, at)
}

func fileAt(space item.Space, name, content string) snapshot.File {
	return snapshot.File{Space: space, Path: name, Size: int64(len(content)), Hash: snapshot.HashOf([]byte(content))}
}

// TestManifestRoundTrip: a manifest decodes as it was encoded, whatever the order of the
// files, and equal files have one name.
func TestManifestRoundTrip(t *testing.T) {
	t.Parallel()
	seal := newSeal(t, here)
	name := rapid.StringMatching(`[a-z][a-z0-9_-]{0,8}`)
	folder := rapid.SampledFrom([]string{".ai/tools", ".ai/directives", ".ai/knowledge", ".ai/signatures/directives", ".claude/skills"})
	rapid.Check(t, func(t *rapid.T) {
		m := snapshot.Manifest{Program: snapshot.Program{Version: "v1", System: snapshot.HashOf(nil)}}
		taken := map[string]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "files") {
			levels := rapid.SliceOfN(name, 1, 4).Draw(t, "levels")
			levels[len(levels)-1] += ".md" // so that no file is a folder
			f := fileAt(rapid.SampledFrom([]item.Space{item.Project, item.User}).Draw(t, "space"),
				path.Join(folder.Draw(t, "folder"), path.Join(levels...)), rapid.String().Draw(t, "content"))
			f.Exec = rapid.Bool().Draw(t, "exec")
			if key := string(f.Space) + f.Path; !taken[key] {
				taken[key] = true
				m.Files = append(m.Files, f)
			}
		}
		data, hash, err := m.Encode(seal)
		if err != nil {
			t.Fatal(err)
		}
		got, err := snapshot.Decode(data, seal)
		if err != nil {
			t.Fatal(err)
		}
		again, same, err := got.Encode(seal)
		if err != nil || hash != same || string(again) != string(data) || got.Bytes() != m.Bytes() || len(got.Files) != len(m.Files) {
			t.Errorf("encoded again it is %s, %v; was %s", again, err, data)
		}
		for _, f := range m.Files {
			if !slices.Contains(got.Files, f) {
				t.Errorf("%+v is lost", f)
			}
		}
	})
}

// hostile are files that no manifest may have together, with a word of the refusal.
func hostile() map[string][]snapshot.File {
	p := func(names ...string) (files []snapshot.File) {
		for _, name := range names {
			files = append(files, fileAt(item.Project, name, name))
		}
		return files
	}
	negative, large, unhashed, system := p(".ai/tools/a.py"), p(".ai/tools/a.py"), p(".ai/tools/a.py"), p(".ai/tools/a.py")
	negative[0].Size, large[0].Size, unhashed[0].Hash, system[0].Space = -1, snapshot.MaxFileBytes+1, "../../a", item.System
	full := p(".ai/tools/a.py")
	full[0].Size = snapshot.MaxFileBytes
	var much []snapshot.File
	for i := range snapshot.MaxBytes/snapshot.MaxFileBytes + 1 {
		f := full[0]
		f.Path = fmt.Sprintf(".ai/tools/%03d.py", i)
		much = append(much, f)
	}
	return map[string][]snapshot.File{
		"clean one: up":             p(".ai/tools/../../../../etc/cron.d/x"),
		"clean one: up at the end":  p(".ai/tools/.."),
		"clean one: absolute":       p("/etc/passwd"),
		"clean one: a dot":          p(".ai/tools/./a.py"),
		"clean one: empty":          p(""),
		"clean one: two slashes":    p(".ai/tools//a.py"),
		"clean one: slash at end":   p(".ai/tools/a.py/"),
		"no items: settings":        p(".ai/config/agent/agent.yaml"),
		"no items: keys":            p(".ai/config/keys/trusted/0123456789abcdef.toml"),
		"no items: state":           p(".ai/state/threads/registry.db"),
		"no items: git":             p(".git/hooks/post-checkout"),
		"no items: home":            p(".bashrc"),
		"no items: the folder":      p(".ai/tools"),
		"no items: a like one":      p(".ai/toolsx/a.py"),
		"no items: Claude settings": p(".claude/settings.json"),
		"mean something else: NUL":  p(".ai/tools/a\x00.py"),
		"mean something else: \\":   p(`.ai/tools/..\..\a.py`),
		"mean something else: ADS":  p(".ai/tools/a.py:stream"),
		"mean something else: LF":   p(".ai/tools/a\nb.py"),
		"UTF-8":                     p(".ai/tools/\xff.py"),
		"levels":                    p(".ai/tools/" + strings.Repeat("a/", 40) + "a.py"),
		"bytes":                     p(".ai/tools/" + strings.Repeat("a", 2000) + ".py"),
		"twice":                     p(".ai/tools/a.py", ".ai/tools/a.py"),
		"no case":                   p(".ai/tools/A.py", ".ai/tools/a.py"),
		"no case: Kelvin":           p(".ai/tools/K.py", ".ai/tools/\u212A.py"),
		"no case: long s":           p(".ai/tools/\u017F.py", ".ai/tools/s.py"),
		"a folder in it":            p(".ai/tools/a.py", ".ai/tools/a.py/b.py"),
		"a folder in it: case":      p(".ai/tools/A.py", ".ai/tools/a.py/b.py"),
		"a folder in it: deeper":    p(".ai/tools/a/b/c.py", ".ai/tools/a/b"),
		"-1 bytes":                  negative,
		"16777217 bytes":            large,
		"no hash":                   unhashed,
		"of the space":              system,
		"268435456 bytes":           much,
	}
}

// TestAttackHostileManifest: a manifest that a trusted key has signed names files outside the folders of items, twice, or too large.
// It is refused before anything of it is laid out.
func TestAttackHostileManifest(t *testing.T) {
	t.Parallel()
	seal := newSeal(t, here)
	for want, files := range hostile() {
		want, _, _ = strings.Cut(want, ":")
		m := snapshot.Manifest{Version: 1, Type: "rye-snapshot", Place: here, Files: files}
		if _, _, err := m.Encode(seal); !errors.Is(err, snapshot.ErrUnusable) {
			t.Errorf("%s: encoded: %v", want, err)
		}
		slices.SortFunc(m.Files, func(a, b snapshot.File) int { return strings.Compare(a.Path, b.Path) })
		data, err := seal.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if want == "UTF-8" {
			continue // JSON has none
		}
		if _, err := snapshot.Decode(data, seal); !errors.Is(err, snapshot.ErrUnusable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: decoded: %v", want, err)
		}
	}
}

// TestAttackForeignManifest: a manifest is signed by a key of somebody else, altered after it was signed, or signed for another place or as another document.
// It is refused, and the refusal says why.
func TestAttackForeignManifest(t *testing.T) {
	t.Parallel()
	seal, stranger := newSeal(t, here), newSeal(t, here)
	m := snapshot.Manifest{Version: 1, Type: "rye-snapshot", Place: here, Files: []snapshot.File{fileAt(item.Project, ".ai/tools/a.py", "a")}}
	signed := func(by *place.Seal, change func(*snapshot.Manifest)) []byte {
		changed := m
		change(&changed)
		data, err := by.Encode(changed)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	as := func(*snapshot.Manifest) {}
	good := signed(seal, as)
	if _, err := snapshot.Decode(good, seal); err != nil {
		t.Fatal(err)
	}
	if accepting := place.NewSeal(seal.Key(), here, place.Accepted{Key: stranger.Key().Public(), Place: here}); true {
		if _, err := snapshot.Decode(signed(stranger, as), accepting); err != nil {
			t.Errorf("of a key that was adopted: %v", err)
		}
	}
	for what, data := range map[string][]byte{
		"signed": signed(stranger, as),
		"signed it: signature was made over another content": []byte(strings.Replace(string(good), `a.py`, `b.py`, 1)),
		"of this place":         signed(seal, func(m *snapshot.Manifest) { m.Place = "another" }),
		"of this place: a kind": signed(seal, func(m *snapshot.Manifest) { m.Type = "rye-thread" }),
		"its version":           signed(seal, func(m *snapshot.Manifest) { m.Version = 2 }),
		"signed: nobody":        []byte(`{"version":1}`),
		"signed: no JSON":       []byte("\x00"),
		"signed: empty":         nil,
	} {
		want, _, _ := strings.Cut(what, ":")
		if _, err := snapshot.Decode(data, seal); !errors.Is(err, snapshot.ErrUnusable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := snapshot.Decode(good, nil); !errors.Is(err, place.ErrNoState) {
		t.Errorf("without a seal: %v", err)
	}
}

// TestOpen: a manifest is read by its name, and a content that is none is refused.
func TestOpen(t *testing.T) {
	t.Parallel()
	s, seal := localIn(t.TempDir(), snapshottest.NewClock()), newSeal(t, here)
	data, name, err := snapshot.Manifest{Files: []snapshot.File{fileAt(item.User, ".ai/tools/a.py", "a")}}.Encode(seal)
	if err != nil {
		t.Fatal(err)
	}
	if putIn(t, s, string(data)) != name {
		t.Error("the name is not the hash of the bytes")
	}
	if m, err := snapshot.Open(t.Context(), s, seal, name); err != nil || len(m.Files) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := snapshot.Open(t.Context(), s, seal, snapshot.HashOf([]byte("missing"))); !errors.As(err, new(*snapshot.MissingError)) {
		t.Errorf("missing: %v", err)
	}
	other := putIn(t, s, "a tool")
	if _, err := snapshot.Open(t.Context(), s, seal, other); !errors.Is(err, snapshot.ErrUnusable) || !strings.Contains(err.Error(), other.Short()) {
		t.Errorf("a content: %v", err)
	}
}

// FuzzManifest: whatever a trusted key has signed, what decodes is sound.
func FuzzManifest(f *testing.F) {
	seal := newSeal(f, here)
	for _, files := range hostile() {
		for _, file := range files[:min(len(files), 2)] {
			f.Add(string(file.Space), file.Path, string(file.Hash), file.Size, file.Path)
		}
	}
	f.Fuzz(func(t *testing.T, space, name, hash string, size int64, second string) {
		m := snapshot.Manifest{Version: 1, Type: "rye-snapshot", Place: here, Files: []snapshot.File{
			{Space: item.Space(space), Path: name, Hash: snapshot.Hash(hash), Size: size},
			{Space: item.Space(space), Path: second, Hash: snapshot.Hash(hash), Size: size},
		}}
		data, err := seal.Encode(m)
		if err != nil {
			return // no JSON
		}
		got, err := snapshot.Decode(data, seal)
		if err != nil {
			if !errors.Is(err, snapshot.ErrUnusable) {
				t.Errorf("%v", err)
			}
			return
		}
		for _, f := range got.Files {
			if strings.Contains(f.Path, "..") && slices.Contains(strings.Split(f.Path, "/"), "..") || path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path ||
				!slices.ContainsFunc(resolve.Folders(), func(folder string) bool { return strings.HasPrefix(f.Path, folder+"/") }) ||
				f.Size < 0 || f.Size > snapshot.MaxFileBytes || !f.Hash.Valid() {
				t.Errorf("%+v decodes", f)
			}
		}
	})
}
