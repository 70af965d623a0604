package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

func newFolder(t testing.TB) Folder {
	t.Helper()
	f := Of(filepath.Join(t.TempDir(), "threads"), "test/task-1772357400")
	if err := f.Make(); err != nil {
		t.Fatal(err)
	}
	return f
}

func sample() thread.Meta {
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	return thread.Meta{
		Version: thread.MetaVersion, ThreadID: "test/task-1772357400", Kind: thread.KindDirective, Directive: "test/task",
		DirectiveHash: "ab", Status: thread.Running, CreatedAt: at, UpdatedAt: at, Model: "fake/small",
		Inputs:       map[string]any{"who": "Zoë <z@example.org>", "list": []any{"a", true}},
		Limits:       thread.Limits{Turns: 3, Tokens: 4, Spend: 250_000, DurationSeconds: 1.5, Spawns: 6, Depth: 7},
		Capabilities: []string{"rye.execute.tool.*"}, Ceiling: [][]string{{"rye.*"}, {}},
		Cost: thread.Cost{Turns: 1, Spend: 1}, Outcome: &thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x"}},
		Transcript: &thread.TranscriptHead{Checkpoints: 1, Bytes: 2, Hash: "cd"},
	}
}

func TestMetaRoundTrip(t *testing.T) {
	t.Parallel()
	seal := placetest.NewSeal(t)
	f, want := newFolder(t), sample()
	for range 2 { // the second replaces the first
		if err := f.WriteMeta(want, seal); err != nil {
			t.Fatal(err)
		}
	}
	want.Type, want.Place = place.MetaType, seal.Place()
	got, err := f.ReadMeta(seal)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v\n%v", got, want, err)
	}
	if info, err := os.Stat(f.Meta()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestMetaWithoutSeal: where no thread of the user has run nothing is read or
// written.
func TestMetaWithoutSeal(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	if err := f.WriteMeta(sample(), nil); !errors.Is(err, place.ErrNoState) {
		t.Errorf("written: %v", err)
	}
	if err := os.WriteFile(f.Meta(), []byte(`{"version":1,"thread_id":"test/task-1772357400"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadMeta(nil); !errors.Is(err, place.ErrNoState) {
		t.Errorf("read: %v", err)
	}
}

// TestMetaOfAnotherPlace: what the right key has signed counts at its place alone,
// and a key that is accepted for documents of before there were places for those
// alone.
func TestMetaOfAnotherPlace(t *testing.T) {
	t.Parallel()
	here, former := placetest.NewSeal(t), placetest.NewSeal(t)
	seal := place.NewSeal(here.Key(), here.Place(), place.Accepted{Key: former.Key().Public()})
	plain := func(m thread.Meta) any { return m }
	for name, c := range map[string]struct {
		key  *sign.Key
		doc  func(thread.Meta) any
		good bool
	}{
		"ours":                  {here.Key(), func(m thread.Meta) any { m.Type, m.Place = place.MetaType, here.Place(); return m }, true},
		"ours, elsewhere":       {here.Key(), func(m thread.Meta) any { m.Type, m.Place = place.MetaType, strings.Repeat("f", 32); return m }, false},
		"ours, nowhere":         {here.Key(), plain, false},
		"former":                {former.Key(), plain, true},
		"former, for our place": {former.Key(), func(m thread.Meta) any { m.Type, m.Place = place.MetaType, here.Place(); return m }, false},
		"former, a receipt":     {former.Key(), func(m thread.Meta) any { m.Type = "rye-mcp/thread-receipt"; return m }, false},
	} {
		f := newFolder(t)
		data, err := sign.EncodeSigned(c.doc(sample()), c.key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Meta(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadMeta(seal); (err == nil) != c.good || err != nil && !errors.Is(err, sign.ErrBadSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Everything but the bytes that the user's key has signed is refused.
func TestMetaRefused(t *testing.T) {
	t.Parallel()
	key, other := placetest.NewSeal(t), placetest.NewSeal(t)
	edit := func(old, new string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, new, 1) }
	}
	for name, c := range map[string]struct {
		change func(string) string
		reader *place.Seal
		want   error // nil: any
	}{
		"more rights":       {edit(`"rye.execute.tool.*"`, `"rye.*"`), key, sign.ErrBadSignature},
		"higher limit":      {edit(`"turns":3`, `"turns":30`), key, sign.ErrBadSignature},
		"another key":       {edit("", ""), other, sign.ErrBadSignature},
		"signature is gone": {edit(`"_signature"`, `"signature"`), key, sign.ErrBadSignature},
		"member twice":      {edit(`{`, `{"status":"completed",`), key, nil},
		"torn":              {func(s string) string { return s[:len(s)/2] }, key, nil},
		"empty":             {func(string) string { return "" }, key, nil},
		"another document":  {func(string) string { return `[1]` }, key, nil},
	} {
		f := newFolder(t)
		if err := f.WriteMeta(sample(), key); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(f.Meta())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Meta(), []byte(c.change(string(data))), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadMeta(c.reader); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMetaOfOthers(t *testing.T) {
	t.Parallel()
	key := placetest.NewSeal(t)

	f := newFolder(t)
	if _, err := f.ReadMeta(key); !errors.Is(err, thread.ErrNoMeta) {
		t.Errorf("missing: %v", err)
	}

	newer := sample()
	newer.Version, newer.Type, newer.Place = thread.MetaVersion+1, place.MetaType, key.Place()
	data, err := key.Encode(newer)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Meta(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadMeta(key); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("newer version: %v", err)
	}

	if err := os.Truncate(f.Meta(), MaxMetaBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadMeta(key); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("huge file: %v", err)
	}
}

// A number that canonical JSON would round is refused, and what was there
// stays.
func TestMetaThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	f, m, seal := newFolder(t), sample(), placetest.NewSeal(t)
	if err := f.WriteMeta(m, seal); err != nil {
		t.Fatal(err)
	}
	m.Inputs = map[string]any{"n": int64(1)<<60 + 1}
	if err := f.WriteMeta(m, seal); err == nil {
		t.Error("written")
	}
	if got, err := f.ReadMeta(seal); err != nil || got.Inputs["who"] == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	first, err := f.WriteArtifact("abc", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.WriteArtifact("abc", []byte("content"))
	if err != nil || again != first || filepath.Dir(first) != f.Artifacts() {
		t.Errorf("%s, then %s, %v", first, again, err)
	}
	if got, err := os.ReadFile(first); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestShareArtifacts(t *testing.T) {
	t.Parallel()
	from, to := newFolder(t), newFolder(t)
	if err := from.ShareArtifacts(to); err != nil {
		t.Errorf("without artifacts: %v", err)
	}
	if _, err := os.Stat(to.Artifacts()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of no artifacts: %v", err)
	}
	path, err := from.WriteArtifact("abc", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(from.Artifacts(), "link.txt")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := from.ShareArtifacts(to); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(to.Artifacts())
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("shared %v, %v", entries, err)
	}
	if got, err := os.ReadFile(filepath.Join(to.Artifacts(), filepath.Base(path))); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.RemoveAll(to.Artifacts()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to.Artifacts(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := from.ShareArtifacts(to); err == nil {
		t.Error("a file in place of the folder is no error")
	}
}

// FuzzReadMeta: no bytes in the place of thread.json are taken for a signed one
// but those that were signed.
func FuzzReadMeta(f *testing.F) {
	key := placetest.NewSeal(f)
	dir := newFolder(f)
	if err := dir.WriteMeta(sample(), key); err != nil {
		f.Fatal(err)
	}
	signed, err := os.ReadFile(dir.Meta())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add([]byte(`{"version":1,"_signature":"x:y"}`))
	f.Add([]byte("{\"limits\":{\"spend\":1e999}}\xff"))
	want := sample()
	want.Type, want.Place = place.MetaType, key.Place()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(dir.Meta(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := dir.ReadMeta(key)
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("accepted %+v", got)
		}
		_, _ = dir.PeekMeta() // must not panic
	})
}

// TestMaxArtifacts: a thread that keeps very much is refused more of it.
func TestMaxArtifacts(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	path, err := f.WriteArtifact("abc", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, MaxArtifacts-5); err != nil { // a hole, which takes no room
		t.Fatal(err)
	}
	if _, err := f.WriteArtifact("def", []byte("more than is left")); !errors.Is(err, ErrArtifactsFull) {
		t.Errorf("written: %v", err)
	}
	if _, err := f.WriteArtifact("def", []byte("less")); err != nil {
		t.Error(err)
	}
	if _, err := f.WriteArtifact("abc", []byte("content")); err != nil {
		t.Errorf("what is kept: %v", err)
	}
}
