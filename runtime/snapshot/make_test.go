package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot/snapshottest"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// scene is a project and a user with items, and where their snapshots are kept.
type scene struct {
	*snapshot.Maker
	project, user string
	store         snapshot.Local
	clock         *snapshottest.Clock
	seal          *place.Seal
	state         string
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{project: t.TempDir(), user: t.TempDir(), state: t.TempDir(), clock: snapshottest.NewClock(), seal: newSeal(t, here)}
	s.clock.Add(time.Since(s.clock.Now())) // files have the times of the system
	s.store = localIn(s.state, s.clock)
	s.Maker = s.maker()
	return s
}

// maker is another process's.
func (s *scene) maker() *snapshot.Maker {
	return &snapshot.Maker{
		Roots: resolve.Roots{Project: s.project, User: s.user}, Store: s.store, Seal: func() *place.Seal { return s.seal }, Now: s.clock.Now,
		Program: func() snapshot.Program {
			return snapshot.Program{Version: "v1", System: snapshot.HashOf([]byte("system"))}
		},
		Index: func() string { return filepath.Join(s.state, "snapshots", "index") },
	}
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) make(t testing.TB) snapshot.Made {
	t.Helper()
	made, err := s.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (s *scene) manifest(t testing.TB) []string {
	t.Helper()
	m, err := snapshot.Open(t.Context(), s.store, s.seal, s.make(t).Name)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range m.Files {
		text := string(f.Space) + ":" + f.Path
		if f.Exec {
			text += "*"
		}
		files = append(files, text)
	}
	return files
}

// TestWhatIsInASnapshot: the items of project and user, and what lies beside them; nothing
// else of .ai.
func TestWhatIsInASnapshot(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, name := range []string{
		".ai/tools/a.py", ".ai/tools/pkg/data.json", ".ai/directives/team/d.md", ".ai/knowledge/k.md", ".ai/signatures/directives/claude/skills/s.sig",
		".claude/agents/reviewer.md", ".claude/skills/s/SKILL.md", ".claude/skills/s/.style", ".claude/skills/s/scripts/run.sh",
		// These are left out.
		".ai/tools/.env", ".ai/tools/__pycache__/a.pyc", ".ai/tools/node_modules/m/index.js", ".ai/tools/.venv/bin/python", ".ai/knowledge/agent/threads/team/t-1.md",
		".ai/config/agent/agent.yaml", ".ai/config/keys/signing/key.pem", ".ai/state/threads/registry.db", ".ai/notes.md", ".claude/settings.json",
		"README.md", "src/main.go", ".claude/skills/s/.git/config", ".ai/tools/bad\nname.py", `.ai/tools/back\slash.py`,
	} {
		write(t, s.project, name, name)
	}
	write(t, s.user, ".ai/tools/mine.py", "mine")
	if err := os.Chmod(filepath.Join(s.project, ".claude/skills/s/scripts/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"project:.ai/directives/team/d.md", "project:.ai/knowledge/k.md", "project:.ai/signatures/directives/claude/skills/s.sig",
		"project:.ai/tools/a.py", "project:.ai/tools/pkg/data.json", "project:.claude/agents/reviewer.md", "project:.claude/skills/s/.style",
		"project:.claude/skills/s/SKILL.md", "project:.claude/skills/s/scripts/run.sh*", "user:.ai/tools/mine.py",
	}
	if got := s.manifest(t); !slices.Equal(got, want) {
		t.Errorf("in it are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAttackLinksInSnapshot: items and folders of a clone are links to files of the machine.
// None of those is in the snapshot; a link within the folder of its kind is the file that it leads to.
func TestAttackLinksInSnapshot(t *testing.T) {
	t.Parallel()
	s, elsewhere := newScene(t), t.TempDir()
	write(t, elsewhere, "secret.md", "secret")
	write(t, s.project, ".ai/tools/a.py", "a")
	link := func(to, name string) {
		t.Helper()
		file := filepath.Join(s.project, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.Symlink(to, file)); err != nil {
			t.Fatal(err)
		}
	}
	link("a.py", ".ai/tools/alias.py")
	link(filepath.Join(elsewhere, "secret.md"), ".ai/tools/out.py")
	link("../../../"+filepath.Base(elsewhere)+"/secret.md", ".ai/tools/up.py")
	link(elsewhere, ".ai/tools/folder")
	link(elsewhere, ".claude/skills/s")
	link("nowhere", ".ai/tools/dangling.py")
	link(elsewhere, ".claude/agents")
	if got, want := s.manifest(t), []string{"project:.ai/tools/a.py", "project:.ai/tools/alias.py"}; !slices.Equal(got, want) {
		t.Errorf("in it are %q, want %q", got, want)
	}
	link(elsewhere, ".ai/knowledge")
	if made, err := s.Make(t.Context()); err == nil {
		t.Errorf("a folder of items that leads out: %+v", made)
	}
}

// TestAtHome: somebody works in the home directory, whose items are those of the project.
func TestAtHome(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.user = s.project
	s.Maker = s.maker()
	write(t, s.project, ".ai/tools/a.py", "a")
	if got, want := s.manifest(t), []string{"project:.ai/tools/a.py"}; !slices.Equal(got, want) {
		t.Errorf("in it are %q, want %q", got, want)
	}
}

// TestNamesFollowContents: the same items have the same name, in this process and in another,
// and any change that counts gives another one.
func TestNamesFollowContents(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/a.py", "a")
	write(t, s.user, ".ai/tools/b.py", "b")
	first := s.make(t).Name
	seen := map[snapshot.Hash]string{first: "at first"}
	file := filepath.Join(s.project, ".ai/tools/a.py")
	for _, step := range []struct {
		what   string
		change func() error
		old    string // of an earlier step, which it is again; empty: none
	}{
		{"nothing", func() error { return nil }, "at first"},
		{"a new time", func() error { return os.Chtimes(file, time.Now(), time.Now()) }, "at first"},
		{"another content of the size", func() error { return os.WriteFile(file, []byte("A"), 0o644) }, ""},
		{"as it was", func() error { return os.WriteFile(file, []byte("a"), 0o644) }, "at first"},
		{"executable", func() error { return os.Chmod(file, 0o755) }, ""},
		{"not readable for others", func() error { return os.Chmod(file, 0o600) }, "at first"},
		{"renamed", func() error { return os.Rename(file, file+".py") }, ""},
		{"gone", func() error { return os.Remove(file + ".py") }, ""},
		{"the user's is the project's", func() error {
			return errors.Join(os.Remove(filepath.Join(s.user, ".ai/tools/b.py")), os.WriteFile(filepath.Join(s.project, ".ai/tools/b.py"), []byte("b"), 0o644))
		}, ""},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		got, other := s.make(t).Name, s.maker()
		again, err := other.Make(t.Context())
		if err != nil || again.Name != got {
			t.Errorf("%s: here %s, elsewhere %s, %v", step.what, got.Short(), again.Name.Short(), err)
		}
		if was, known := seen[got]; was != step.old || known != (step.old != "") {
			t.Errorf("%s: as %q, want as %q", step.what, was, step.old)
		}
		if seen[got] == "" {
			seen[got] = step.what
		}
	}
}

// TestUnchangedIsNotRead: where nothing has changed no file is read, and nothing is written,
// for half of the time that a content is kept.
func TestUnchangedIsNotRead(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/a.py", "a")
	s.clock.Add(time.Minute) // so the file has not changed just now
	first := s.make(t).Name
	counting := &countingBlobs{Blobs: s.store}
	for _, m := range []*snapshot.Maker{s.Maker, s.maker()} {
		m.Store = counting
		made, err := m.Make(t.Context())
		if err != nil || made.Name != first || counting.writes != 0 {
			t.Errorf("%+v, %v, %d writes", made, err, counting.writes)
		}
	}
	s.clock.Add(snapshot.Grace / 2)
	if made := s.make(t); made.Name != first || counting.writes == 0 {
		t.Errorf("after half of the grace: %v, %d writes", made.Name, counting.writes)
	}
	for h := range s.allBlobs(t) {
		if b, err := s.store.Stat(t.Context(), h); err != nil || !b.UsedAt.Equal(s.clock.Now()) {
			t.Errorf("%+v, %v", b, err)
		}
	}
}

// countingBlobs counts what is written.
type countingBlobs struct {
	snapshot.Blobs
	writes int
}

func (c *countingBlobs) Use(ctx context.Context, hashes []snapshot.Hash) ([]snapshot.Hash, error) {
	c.writes++
	return c.Blobs.Use(ctx, hashes)
}

func (c *countingBlobs) Put(ctx context.Context, h snapshot.Hash, size int64, content io.Reader) error {
	c.writes++
	return c.Blobs.Put(ctx, h, size, content)
}

func (s *scene) allBlobs(t testing.TB) map[snapshot.Hash]bool {
	t.Helper()
	found := map[snapshot.Hash]bool{}
	for b, err := range s.store.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found[b.Hash] = true
	}
	return found
}

// TestAttackForgedIndex: a second process writes an index that says that a changed tool is as it was.
// The index is not believed, and the snapshot has the tool as it is.
func TestAttackForgedIndex(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/a.py", "a")
	s.clock.Add(time.Minute)
	first := s.make(t).Name
	file := filepath.Join(s.state, "snapshots", "index")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	evil := putIn(t, s.store, "evil")
	forged := strings.Replace(string(data), string(snapshot.HashOf([]byte("a"))), string(evil), 1)
	if forged == string(data) {
		t.Fatalf("the index does not name the file: %s", data)
	}
	for _, text := range []string{forged, "", "rye-snapshot-index", string(data[:len(data)/2])} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		made, err := s.maker().Make(t.Context())
		if err != nil || made.Name != first {
			t.Errorf("with the index %.60q: %+v, %v", text, made, err)
		}
	}
}

// TestContentsThatAreLost: a snapshot is made again with the contents that are missing.
func TestContentsThatAreLost(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/a.py", "a")
	first := s.make(t).Name
	if err := os.RemoveAll(filepath.Join(s.state, "snapshots")); err != nil {
		t.Fatal(err)
	}
	if made := s.make(t); made.Name != first || len(s.allBlobs(t)) != 2 {
		t.Errorf("%v, %d contents", made.Name, len(s.allBlobs(t)))
	}
}

// TestTooMany: more items than there is room for are a clear error.
func TestTooMany(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for i := range snapshot.MaxBytes/snapshot.MaxFileBytes + 1 {
		name := filepath.Join(s.project, fmt.Sprintf(".ai/tools/%d.bin", i))
		write(t, s.project, fmt.Sprintf(".ai/tools/%d.bin", i), "")
		if err := os.Truncate(name, snapshot.MaxFileBytes); err != nil { // no disk is used
			t.Fatal(err)
		}
	}
	_, err := s.Make(t.Context())
	if e, ok := errors.AsType[*snapshot.TooLargeError](err); !ok || e.Bytes <= snapshot.MaxBytes {
		t.Errorf("%v", err)
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	write(t, s.project, ".ai/tools/team/a.py", "a")
	write(t, s.project, ".claude/skills/s/SKILL.md", "skill")
	write(t, s.project, ".claude/skills/s/run.sh", "run")
	pins := s.make(t).Pins
	tool := trust.Subject{Kind: item.Tool, ID: "team/a", Ext: ".py", Space: item.Project, Content: []byte("a")}
	skill := trust.Subject{Kind: item.Directive, ID: "claude/skills/s", Ext: ".md", Space: item.Project, Folder: ".claude/skills", Content: []byte("skill")}
	skill.Detached = &resolve.Detached{Files: []resolve.File{{Name: "SKILL.md", Hash: string(snapshot.HashOf([]byte("skill")))}, {Name: "run.sh", Hash: string(snapshot.HashOf([]byte("run")))}}}
	with := func(s trust.Subject, change func(*trust.Subject)) trust.Subject { change(&s); return s }
	for what, row := range map[string]struct {
		s    trust.Subject
		want string // in the refusal; empty: there is none
	}{
		"as it was":        {tool, ""},
		"changed":          {with(tool, func(s *trust.Subject) { s.Content = []byte("b") }), "was changed after snapshot"},
		"new":              {with(tool, func(s *trust.Subject) { s.ID = "team/b" }), "was added after that was made"},
		"in another space": {with(tool, func(s *trust.Subject) { s.Space = item.User }), "was added"},
		"built in":         {with(tool, func(s *trust.Subject) { s.Space, s.ID = item.System, "rye/x" }), ""},
		"settings":         {with(tool, func(s *trust.Subject) { s.Kind = "" }), ""},
		"of a recording":   {with(tool, func(s *trust.Subject) { s.Recorded, s.ID = true, "x" }), ""},
		"what a thread left": {
			trust.Subject{Kind: item.Knowledge, ID: "agent/threads/a/b-1", Ext: ".md", Space: item.Project}, "",
		},
		"a skill":         {skill, ""},
		"a skill's file":  {with(skill, func(s *trust.Subject) { s.Detached = changedFile(*s.Detached) }), "run.sh"},
		"a skill's added": {with(skill, func(s *trust.Subject) { s.Detached = addedFile(*s.Detached) }), "added"},
	} {
		err := pins.Check(row.s)
		if _, changed := errors.AsType[*snapshot.ChangedError](err); changed != (row.want != "") || changed && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := (*snapshot.Pins)(nil).Check(tool); err != nil {
		t.Errorf("without pins: %v", err)
	}
	m, err := snapshot.Open(t.Context(), s.store, s.seal, pins.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.PinsOf(pins.Name(), m).Check(tool); err != nil {
		t.Errorf("of the manifest: %v", err)
	}
}

func changedFile(d resolve.Detached) *resolve.Detached {
	d.Files = []resolve.File{d.Files[0], {Name: "run.sh", Hash: string(snapshot.HashOf([]byte("other")))}}
	return &d
}

func addedFile(d resolve.Detached) *resolve.Detached {
	d.Files = append(slices.Clone(d.Files), resolve.File{Name: "more.sh", Hash: string(snapshot.HashOf(nil))})
	return &d
}

// BenchmarkUnchanged is what a start costs where nothing has changed, of 300 items.
func BenchmarkUnchanged(b *testing.B) {
	s := newScene(b)
	for i := range 300 {
		write(b, s.project, fmt.Sprintf(".ai/tools/team%d/tool%d.py", i%20, i), strings.Repeat("x", 1000))
	}
	s.clock.Add(time.Minute)
	s.make(b)
	b.Run("this process", func(b *testing.B) {
		for b.Loop() {
			s.make(b)
		}
	})
	b.Run("another process", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.maker().Make(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
