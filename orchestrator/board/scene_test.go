package board_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/orchestrator/changes"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.checks", "20"); err != nil { // each opens a store
		panic(err)
	}
	flag.Parse() // the command line counts
	goleak.VerifyTestMain(m)
}

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// failer is of tests and of rapid's.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// scene is a project of threads without processes.
type scene struct {
	failer
	ctx     context.Context //nolint:containedctx // of the test
	store   *sqlite.Store
	all     *threads.Threads
	feed    *changes.Feed
	now     time.Time
	fresh   func() *threads.Threads // of another process
	asked   int
	crowded int
	asking  string // what is asked
	ended   store.EndedMost
}

func newScene(t testing.TB) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s, closed := openScene(ctx, t, t.TempDir())
	t.Cleanup(closed)
	return s
}

func openScene(ctx context.Context, f failer, project string) (s *scene, closed func()) {
	f.Helper()
	s = &scene{failer: f, ctx: ctx, now: testTime}
	state, err := placetest.Make(project, filepath.Join(project, "user"))
	s.noError(err)
	s.store, err = sqlite.Open(ctx, state.Dir, sqlite.Options{Mark: state.Seal.Mark})
	s.noError(err)
	home := folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()
	s.fresh = func() *threads.Threads {
		return threads.New(threads.Deps{
			Project: project, Store: s.store, Records: records.Local{Home: home}, Now: func() time.Time { return s.now }, Log: zerolog.Nop(),
			Life:  &life.Local{Project: project, Home: home, Place: process.Here("host"), Args: func(thread.ID) []string { return []string{"none"} }},
			Freed: func(context.Context) {},
		})
	}
	s.all = s.fresh()
	s.feed = &changes.Feed{Threads: s.all, Every: time.Millisecond}
	return s, func() {
		s.feed.Close()
		s.noError(s.all.Close())
	}
}

// keeper is one of a server that has just been started.
func (s *scene) keeper() *board.Keeper {
	return board.New(board.Deps{Threads: s.all, Feed: s.feed, Window: func(string) int64 { return 200_000 }, Ended: s.ended})
}

func (s *scene) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) any() storetest.Any { return storetest.As(s.store) }

// start begins a thread below another, or a root.
func (s *scene) start(directive string, parent thread.ID) thread.ID {
	s.Helper()
	return s.begin(store.NewThread{Directive: directive, ParentID: parent})
}

func (s *scene) begin(n store.NewThread) thread.ID {
	s.Helper()
	rec := s.register(n)
	if n.ContinuationOf != "" && !n.Handoff {
		s.noError(s.store.Link(s.ctx, n.ContinuationOf, rec.ThreadID, s.now))
	}
	s.claim(rec.ThreadID)
	return rec.ThreadID
}

// registerOnly registers a thread that is to continue another, which pays for it.
func (s *scene) registerOnly(n store.NewThread) thread.ID {
	s.Helper()
	n.Kind, n.Model, n.MaxSpawns, n.Now, n.Run = thread.KindDirective, "fake/model", 1000, s.now, thread.NewRun()
	rec, _, err := store.Register(s.ctx, s.store, n, nil)
	s.noError(err)
	s.describe(rec)
	return rec.ThreadID
}

func (s *scene) register(n store.NewThread) thread.Record {
	s.Helper()
	if n.Kind == "" {
		n.Kind = thread.KindDirective
	}
	n.Model, n.MaxSpawns, n.Now, n.Run = "fake/model", 1000, s.now, thread.NewRun()
	rec, _, err := store.Register(s.ctx, s.store, n, nil)
	s.noError(err)
	if n.ParentID == "" {
		s.noError(s.store.OpenRoot(s.ctx, rec.ThreadID, 1_000_000, s.now))
	} else if above, err := s.store.Budget(s.ctx, n.ParentID); err == nil && above.Active {
		s.noError(s.store.Reserve(s.ctx, rec.ThreadID, n.ParentID, above.Remaining()/10, s.now))
	}
	s.describe(rec)
	return rec
}

// describe writes the thread.json of a thread.
func (s *scene) describe(rec thread.Record) {
	s.Helper()
	of := s.all.Records.Of(rec.ThreadID)
	s.noError(of.Prepare())
	s.noError(of.Meta().Write(thread.Meta{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: rec.Directive, ParentID: rec.ParentID, ContinuationOf: rec.ContinuationOf,
		Status: thread.Running, CreatedAt: s.now, UpdatedAt: s.now, Limits: thread.Limits{Turns: 9, Spend: 1_000_000},
	}))
}

// said gives a thread a transcript with words of its model.
func (s *scene) said(id thread.ID, words string) {
	s.Helper()
	w, err := s.all.Finisher.OpenTranscript(id, "")
	s.noError(err)
	s.noError(w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: 1, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: words}}}))
	s.noError(w.Close())
}

// claim makes a thread run, elsewhere.
func (s *scene) claim(id thread.ID) {
	s.Helper()
	_, err := s.any().Apply(s.ctx, store.Claimed(id, thread.Process{PID: 1 << 30, Host: "elsewhere", Boot: "another"}, s.now))
	s.noError(err)
}

// spend is the report of a turn.
func (s *scene) spend(id thread.ID, turns int) {
	s.Helper()
	cost := thread.Cost{Turns: turns, InputTokens: int64(100 * turns), Spend: thread.Micros(turns)}
	s.noError(s.any().Report(s.ctx, id, cost.Spend, s.now))
	s.noError(s.any().RecordCost(s.ctx, id, cost, int64(100*turns)))
}

// end ends a thread as its process does.
func (s *scene) end(id thread.ID, o thread.Outcome) {
	s.Helper()
	f := s.all.Finisher
	w, err := f.OpenTranscript(id, "")
	s.noError(err)
	defer func() { _ = w.Close() }()
	rec, err := s.store.Get(s.ctx, id)
	s.noError(err)
	_, err = f.Finish(s.ctx, s.store.Runner(id, rec.Run), w, o, rec.Cost)
	s.noError(err)
}

// ask has a thread ask, and returns the id of its question.
func (s *scene) ask(id thread.ID) string {
	s.Helper()
	s.asked++
	q := thread.Question{
		ID: fmt.Sprintf("q-%d", s.asked), ThreadID: id, Kind: thread.AskLimit, Code: "turns_exceeded", Text: cmp.Or(s.asking, "more?"),
		Options: []thread.Decision{thread.Raise, thread.Stop}, Default: thread.Stop, AskedAt: s.now, DeadlineAt: s.now.Add(time.Hour),
	}
	rec, err := s.store.Get(s.ctx, id)
	s.noError(err)
	s.noError(s.store.Runner(id, rec.Run).Ask(s.ctx, q))
	return q.ID
}

func (s *scene) answer(question string) {
	s.Helper()
	_, err := s.store.Answer(s.ctx, question, thread.Answer{Decision: thread.Stop, By: "test", At: s.now})
	s.noError(err)
}

// shown is a face that shows a board.
type shown struct {
	*scene
	keeper  *board.Keeper
	version string
	rows    map[thread.ID]*board.Row
	last    board.Board
}

func (s *scene) face(k *board.Keeper) *shown { return &shown{scene: s, keeper: k} }

// look asks for what is new, and shows it.
func (f *shown) look() board.Board {
	f.Helper()
	b, err := f.keeper.Since(f.ctx, f.version, board.Options{})
	f.noError(err)
	f.take(b)
	return b
}

func (f *shown) take(b board.Board) {
	if b.Whole {
		f.rows = map[thread.ID]*board.Row{}
	}
	for _, key := range b.Gone {
		delete(f.rows, key)
	}
	for _, row := range b.Rows {
		f.rows[row.Key] = row
	}
	f.version, f.last = b.Version, b
}

// wantWhole holds a face against a whole board of a server that has just been started.
func (f *shown) wantWhole() {
	f.Helper()
	whole := f.face(f.scene.keeper())
	whole.look()
	if !reflect.DeepEqual(f.rows, whole.rows) {
		for key := range maps.Keys(whole.rows) {
			if !reflect.DeepEqual(f.rows[key], whole.rows[key]) {
				f.Fatalf("row %s is shown as\n%s\nand is\n%s", key, text(f.rows[key]), text(whole.rows[key]))
			}
		}
		f.Fatalf("shown are %v, there are %v", slices.Sorted(maps.Keys(f.rows)), slices.Sorted(maps.Keys(whole.rows)))
	}
	if f.last.Totals != whole.last.Totals || f.last.Omitted != whole.last.Omitted {
		f.Fatalf("%+v and %d, want %+v and %d", f.last.Totals, f.last.Omitted, whole.last.Totals, whole.last.Omitted)
	}
}

func text(row *board.Row) string {
	if row == nil {
		return "nothing"
	}
	data, _ := json.MarshalIndent(row, "", "  ")
	return string(data)
}
