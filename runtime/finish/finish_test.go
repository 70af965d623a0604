package finish

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is a clock that stands still, so that two runs can be compared.
func now() time.Time { return time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC) }

// family is a running parent and its running child, with budgets.
type family struct {
	t      *testing.T
	store  *sqlite.Store
	dir    string
	items  string // the folder of knowledge
	key    *sign.Key
	parent thread.ID
	child  thread.ID
}

const reserved thread.Micros = 400_000

func newFamily(t *testing.T) *family {
	t.Helper()
	project := t.TempDir()
	f := &family{t: t, dir: placetest.Dir(project), items: KnowledgeDir(project)}
	var err error
	// The same key each time, for its signatures stand in what is compared.
	if f.key, err = sign.Generate(t.TempDir(), false, bytes.NewReader(make([]byte, 32))); err != nil {
		t.Fatal(err)
	}
	if f.store, err = sqlite.Open(t.Context(), f.dir, sqlite.Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.store.Close() })
	f.parent = f.start("test/parent", "")
	f.child = f.start("test/child", f.parent)
	f.must(f.store.OpenRoot(t.Context(), f.parent, 1_000_000, now()))
	f.must(f.store.Reserve(t.Context(), f.child, f.parent, reserved, now()))
	return f
}

func (f *family) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// start registers and claims a thread and writes its thread.json.
func (f *family) start(directive string, parent thread.ID) thread.ID {
	f.t.Helper()
	n := store.NewThread{Kind: thread.KindDirective, Directive: directive, ParentID: parent, MaxSpawns: 1, Now: now()}
	rec, _, err := store.Register(f.t.Context(), f.store, n, func(id thread.ID) error { return folder.Of(f.dir, id).Make() })
	f.must(err)
	_, err = storetest.As(f.store).Apply(f.t.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "here"}, now()))
	f.must(err)
	meta := thread.Meta{ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: directive, Status: thread.Running, CreatedAt: now()}
	f.must(folder.Of(f.dir, rec.ThreadID).WriteMeta(meta, placetest.Seal(f.key)))
	return rec.ThreadID
}

// home is where the threads are.
func (f *family) home() func() folder.Home {
	return folder.Home{Dir: f.dir, Seal: placetest.Seal(f.key)}.Always()
}

// finish opens the transcript as a process does and ends the child. Stop names
// the step after which the process is gone.
func (f *family) finish(o thread.Outcome, cost thread.Cost, stop thread.Crashpoint) (rec thread.Record, err error) {
	f.t.Helper()
	finisher := &Finisher{Store: f.store, Records: records.Local{Home: f.home()}, KnowledgeDir: f.items, Now: now}
	if stop != "" {
		finisher.Crashpoints = func(s thread.Crashpoint) {
			if s == stop {
				panic(errStopped)
			}
		}
	}
	w, err := finisher.OpenTranscript(f.child, "")
	f.must(err)
	defer func() {
		f.must(w.Close())
		if v := recover(); v != nil {
			err, _ = v.(error)
		}
	}()
	return finisher.Finish(f.t.Context(), f.store.Runner(f.child, ""), w, o, cost)
}

var errStopped = errors.New("the process is gone")

// end is everything that says how the child ended.
type end struct {
	row    thread.Record
	meta   thread.Meta
	budget store.Budget
	parent store.Budget
	lines  string
	// rendering is the knowledge entry; empty without one.
	rendering string
}

func (f *family) look() end {
	f.t.Helper()
	var e end
	var err error
	e.row, err = f.store.Get(f.t.Context(), f.child)
	f.must(err)
	e.meta, err = folder.Of(f.dir, f.child).ReadMeta(placetest.Seal(f.key))
	f.must(err)
	e.budget, err = f.store.Budget(f.t.Context(), f.child)
	f.must(err)
	e.parent, err = f.store.Budget(f.t.Context(), f.parent)
	f.must(err)
	path := folder.Of(f.dir, f.child).Transcript()
	_, err = transcript.Verify(records.File(path), f.key, e.meta.Transcript)
	f.must(err)
	for event, err := range transcript.Events(records.File(path)) {
		f.must(err)
		e.lines += string(event.Type) + "\n"
	}
	text, err := os.ReadFile(filepath.Join(f.items, "agent", "threads", "test", "child", filepath.Base(string(f.child))+".md"))
	f.must(err)
	e.rendering = string(text)
	return e
}

var (
	done     = thread.Outcome{State: thread.Completed, Result: "done", Outputs: map[string]any{"n": "1"}}
	doneCost = thread.Cost{Turns: 3, InputTokens: 10, OutputTokens: 5, Spend: 1_234}
	died     = thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "process_died", Message: "died"}}
)

// A crash after any step is mended by running the sequence again: the end is
// the one that was decided first, whatever whoever repeats it believes.
func TestCrashAfterEachStep(t *testing.T) {
	t.Parallel()
	whole := newFamily(t)
	if _, err := whole.finish(done, doneCost, ""); err != nil {
		t.Fatal(err)
	}
	want := whole.look()
	if want.row.Status != thread.Completed || want.row.Outcome.Result != "done" || want.row.Cost != doneCost ||
		want.meta.Status != thread.Completed || want.budget.Active || want.parent.Actual != 1_234 || want.parent.Reserved != 0 {
		t.Fatalf("got %+v", want)
	}
	for _, point := range Crashpoints() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			f := newFamily(t)
			if _, err := f.finish(done, doneCost, point); !errors.Is(err, errStopped) {
				t.Fatalf("it was not stopped: %v", err)
			}
			for range 2 {
				rec, err := f.finish(died, thread.Cost{}, "")
				if err != nil || rec.Status != thread.Completed {
					t.Fatalf("%s, %v", rec.Status, err)
				}
			}
			if got := f.look(); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// A handoff that crashes after any step is mended in the same way: the thread is
// linked to its successor, which is admitted in its place, once.
func TestHandoffCrashAfterEachStep(t *testing.T) {
	t.Parallel()
	for _, point := range append(Crashpoints(), "") {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			f := newFamily(t)
			n := store.NewThread{Kind: thread.KindDirective, Directive: "test/child", ContinuationOf: f.child, Handoff: true, Now: now()}
			next, _, err := store.Register(t.Context(), f.store, n, func(id thread.ID) error { return folder.Of(f.dir, id).Make() })
			f.must(err)
			_, err = storetest.As(f.store).HandOver(t.Context(), f.child, next.ThreadID, now())
			f.must(err)
			passed := thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: next.ThreadID, TrailingTurns: 3}}
			if _, err := f.finish(passed, doneCost, point); point != "" && !errors.Is(err, errStopped) {
				t.Fatalf("it was not stopped: %v", err)
			}
			rec, err := f.finish(died, thread.Cost{}, "")
			if err != nil || rec.Status != thread.Continued || rec.ContinuationThreadID != next.ThreadID {
				t.Fatalf("%+v, %v", rec, err)
			}
			got := f.look()
			if got.meta.Status != thread.Continued || got.meta.Outcome == nil || *got.meta.Outcome.Handoff != *passed.Handoff || got.budget.Active ||
				!strings.HasSuffix(got.lines, "thread_handoff\ncheckpoint\n") || !strings.Contains(got.rendering, "status: continued") ||
				!strings.Contains(got.rendering, string(next.ThreadID)) {
				t.Errorf("got %+v", got)
			}
			next, err = f.store.Get(t.Context(), next.ThreadID)
			if err != nil || next.Status != thread.Created || next.AdmittedAt.IsZero() {
				t.Errorf("the successor is %+v, %v", next, err)
			}
		})
	}
}

// A summary stands beside the rendering of its thread, is signed, and has replaced
// the one before.
func TestWriteSummary(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	rec, err := f.store.Get(t.Context(), f.child)
	f.must(err)
	finisher := &Finisher{Store: f.store, Records: records.Local{Home: f.home()}, KnowledgeDir: f.items, Now: now}
	for _, said := range []string{"first", "```yaml\nname: another\n```\nsecond"} {
		f.must(finisher.WriteSummary(rec, said))
	}
	id := SummaryID(rec.Directive, rec.ThreadID)
	if want := "test/child/" + filepath.Base(string(f.child)) + "-summary"; id != want || KnowledgeID(id) != "agent/threads/"+want {
		t.Errorf("%s, %s", id, KnowledgeID(id))
	}
	text, err := os.ReadFile(filepath.Join(f.items, filepath.FromSlash(KnowledgeID(id))+".md"))
	f.must(err)
	f.must(sign.Check(text, ".md", sign.Name{Kind: "knowledge", ID: KnowledgeID(id)}, f.key))
	doc, err := parse.Knowledge("x.md", text)
	f.must(err)
	if doc.Name != filepath.Base(id) || doc.Category != "agent/threads/test/child" || doc.EntryType != "thread_summary" ||
		!strings.Contains(doc.Body, "second") || strings.Contains(string(text), "status:") {
		t.Errorf("%+v", doc)
	}
	finisher.KnowledgeDir = ""
	if err := finisher.WriteSummary(rec, "x"); err == nil {
		t.Error("a summary was written nowhere")
	}
}

// The work of a thread can be found as a signed knowledge entry, however long it
// was and whatever its model wrote.
func TestRendering(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	w, err := (&Finisher{Records: records.Local{Home: f.home()}, Now: now}).OpenTranscript(f.child, "")
	f.must(err)
	for _, said := range []string{strings.Repeat("é", maxRendering), "```yaml\nname: another\n```", "<!-- rye:signed:x -->", "the last words"} {
		f.must(w.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: llm.Text(llm.User, said).Blocks}))
	}
	f.must(w.Close())
	if _, err := f.finish(done, doneCost, ""); err != nil {
		t.Fatal(err)
	}
	text := []byte(f.look().rendering)
	if err := sign.Check(text, ".md", sign.Name{Kind: "knowledge", ID: "agent/threads/test/child/" + filepath.Base(string(f.child))}, f.key); err != nil {
		t.Error(err)
	}
	doc, err := parse.Knowledge("x.md", text)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Name != filepath.Base(string(f.child)) || doc.EntryType != "thread_transcript" ||
		!strings.Contains(doc.Body, "bytes left out") || !strings.Contains(doc.Body, "the last words") {
		t.Errorf("%s, %s, %d bytes", doc.Name, doc.EntryType, len(doc.Body))
	}
}

// TestAttackRenderingOutside: a repository has a link in its folder of knowledge that leads out of the project, to where renderings of threads are written. Nothing is written there.
func TestAttackRenderingOutside(t *testing.T) {
	t.Parallel()
	outside, ai := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(ai, "knowledge"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(ai, "knowledge", "agent")); err != nil {
		t.Fatal(err)
	}
	f := &Finisher{KnowledgeDir: filepath.Join(ai, "knowledge")}
	if err := f.putEntry("knowledge/agent/threads/x.md", []byte("x")); err == nil {
		t.Error("it was written")
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) > 0 {
		t.Errorf("outside are %v, %v", found, err)
	}
	if err := f.putEntry("knowledge/other/x.md", []byte("x")); err != nil {
		t.Error(err)
	}
	if found, err := os.ReadDir(filepath.Join(ai, "knowledge", "other")); err != nil || len(found) != 1 || found[0].Name() != "x.md" {
		t.Errorf("written are %v, %v", found, err)
	}
}

// TestAttackRenderingsElsewhere: the folder .ai of a repository is a link out of the project, to entries that look like those about threads. They are not looked at, and count as none.
func TestAttackRenderingsElsewhere(t *testing.T) {
	t.Parallel()
	project, outside := t.TempDir(), t.TempDir()
	rec := thread.Record{ThreadID: "x-1", Directive: "x", Status: thread.Completed}
	f := &Finisher{KnowledgeDir: KnowledgeDir(project)}
	entry := filepath.Join(outside, f.below(RenderingID(rec)+".md"))
	if err := os.MkdirAll(filepath.Dir(entry), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(entry, []byte("```yaml\nthread_id: x-1\nstatus: completed\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func() (found int, err error) {
		t.Helper()
		whole, err := f.Entries(9, func(Entry) error { found++; return nil })
		if err != nil || !whole {
			t.Errorf("whole %t, %v", whole, err)
		}
		return found, f.CheckRendering(rec)
	}
	if err := os.Symlink(outside, filepath.Join(project, ".ai")); err != nil {
		t.Fatal(err)
	}
	if found, err := look(); found != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("behind the link %d are found, %v", found, err)
	}
	if err := os.Remove(filepath.Join(project, ".ai")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(outside, filepath.Join(project, ".ai")); err != nil {
		t.Fatal(err)
	}
	if found, err := look(); found != 1 || err != nil {
		t.Errorf("in the project %d are found, %v", found, err)
	}
}

// A process that died before it had decided is settled at what it had reported.
func TestDiedUndecided(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.must(storetest.As(f.store).Report(t.Context(), f.child, 777, now()))
	rec, err := f.finish(died, thread.Cost{Turns: 1, Spend: 500}, "")
	if err != nil || rec.Status != thread.Error || rec.Outcome.Error.Code != "process_died" {
		t.Fatalf("%+v, %v", rec, err)
	}
	if got := f.look(); got.parent.Actual != 777 || got.parent.Reserved != 0 {
		t.Errorf("parent's budget %+v", got.parent)
	}
}

// A thread that never had a budget, a thread.json or a claim ends all the same.
func TestHalfMade(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	n := store.NewThread{Kind: thread.KindDirective, Directive: "test/half", Now: now()}
	rec, _, err := store.Register(t.Context(), f.store, n, func(id thread.ID) error { return folder.Of(f.dir, id).Make() })
	f.must(err)
	f.child = rec.ThreadID
	rec, err = f.finish(died, thread.Cost{}, "")
	if err != nil || rec.Status != thread.Error {
		t.Errorf("%+v, %v", rec, err)
	}
	if _, err := os.Stat(folder.Of(f.dir, f.child).Meta()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a thread.json was made: %v", err)
	}
}

// A thread.json that cannot be trusted is left as it is and reported; the row,
// which is the truth, is terminal by then.
func TestTamperedMeta(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	path := filepath.Join(f.dir, string(f.child), "thread.json")
	f.must(os.WriteFile(path, []byte(`{"version":1,"status":"running"}`), 0o600))
	rec, err := f.finish(done, doneCost, "")
	if !errors.Is(err, sign.ErrBadSignature) || rec.Status != thread.Completed {
		t.Errorf("%s, %v", rec.Status, err)
	}
}

// An outcome that is none changes nothing.
func TestNotTerminal(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	if _, err := f.finish(thread.Outcome{State: thread.Running}, thread.Cost{}, ""); err == nil {
		t.Error("a thread finished as running")
	}
	if rec, err := f.store.Get(t.Context(), f.child); err != nil || rec.Status != thread.Running {
		t.Errorf("%s, %v", rec.Status, err)
	}
}
