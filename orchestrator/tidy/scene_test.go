package tidy_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// scene is a project of threads without processes.
type scene struct {
	testing.TB
	ctx     context.Context //nolint:containedctx // of the test
	project string
	store   *sqlite.Store
	t       *tidy.Tidier
	now     time.Time
}

func newScene(t testing.TB) *scene {
	t.Helper()
	return openScene(t, t.TempDir())
}

// openScene opens a project, as another process would.
func openScene(t testing.TB, project string) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &scene{TB: t, ctx: ctx, project: project, now: testTime}
	var err error
	s.t, s.store, err = openTidier(ctx, project, func() time.Time { return s.now })
	s.noError(err)
	t.Cleanup(func() { s.noError(s.t.Threads.Close()) })
	return s
}

func openTidier(ctx context.Context, project string, now func() time.Time) (*tidy.Tidier, *sqlite.Store, error) {
	state, err := placetest.Make(project, filepath.Join(project, "user"))
	if err != nil {
		return nil, nil, err
	}
	db, err := sqlite.Open(ctx, state.Dir, sqlite.Options{Mark: state.Seal.Mark})
	if err != nil {
		return nil, nil, err
	}
	return newTidier(project, state, db, now), db, nil
}

func newTidier(project string, state place.State, db store.Store, now func() time.Time) *tidy.Tidier {
	home := folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()
	all := threads.New(threads.Deps{
		Project: project, Store: db, Records: records.Local{Home: home}, Now: now, Log: zerolog.Nop(),
		Life:  &life.Local{Project: project, Home: home, Place: process.Here("host"), Args: func(thread.ID) []string { return []string{"none"} }},
		Freed: func(context.Context) {},
	})
	t := &tidy.Tidier{Threads: all, Settings: &settings.Source{}, Stop: &stop.Stopper{Threads: all}, Schedule: func() (tidy.Schedule, error) { return tidy.Schedule{Interval: time.Hour}, nil }}
	for _, kept := range keptFor {
		t.Belongings = append(t.Belongings, tidy.Belonging{Name: kept, Remove: func(_ context.Context, rec thread.Record) error {
			return os.RemoveAll(keptIn(project, kept, rec.ThreadID))
		}})
	}
	return t
}

// keptFor are the folders in which something is kept for each thread, at [keptIn].
var keptFor = []string{"trees", "notes"}

func keptIn(project, kept string, id thread.ID) string {
	return filepath.Join(project, kept, strings.ReplaceAll(string(id), "/", "_"))
}

func (s *scene) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// running begins a thread below another, or a root, with money.
func (s *scene) running(directive string, parent thread.ID) thread.ID {
	s.Helper()
	return s.begin(store.NewThread{Directive: directive, ParentID: parent})
}

func (s *scene) begin(n store.NewThread) thread.ID {
	s.Helper()
	n.Kind, n.Model, n.MaxSpawns, n.Now, n.Run = thread.KindDirective, "fake/model", 1000, s.now, thread.NewRun()
	rec, _, err := store.Register(s.ctx, s.store, n, nil)
	s.noError(err)
	if n.ContinuationOf != "" {
		s.noError(s.store.Link(s.ctx, n.ContinuationOf, rec.ThreadID, s.now))
	}
	if n.ParentID == "" {
		s.noError(s.store.OpenRoot(s.ctx, rec.ThreadID, 1000, s.now))
	} else {
		above, err := s.store.Budget(s.ctx, n.ParentID)
		s.noError(err)
		s.noError(s.store.Reserve(s.ctx, rec.ThreadID, n.ParentID, above.Remaining()/10, s.now))
	}
	_, err = s.any().Apply(s.ctx, store.Claimed(rec.ThreadID, thread.Process{PID: 1 << 30, Host: "elsewhere", Boot: "another"}, s.now))
	s.noError(err)
	for _, kept := range keptFor {
		s.noError(os.MkdirAll(keptIn(s.project, kept, rec.ThreadID), 0o700))
	}
	of := s.t.Threads.Records.Of(rec.ThreadID)
	s.noError(of.Prepare())
	s.noError(of.Meta().Write(thread.Meta{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: rec.Directive, ParentID: rec.ParentID, ContinuationOf: rec.ContinuationOf,
		Status: thread.Running, CreatedAt: s.now, UpdatedAt: s.now, Limits: thread.Limits{Spend: 1000},
	}))
	return rec.ThreadID
}

func (s *scene) any() storetest.Any { return storetest.As(s.store) }

// end ends a thread that has spent something, with all that it leaves.
func (s *scene) end(id thread.ID, as thread.State, spent thread.Micros) {
	s.Helper()
	s.noError(end(s.ctx, s.t, id, as, spent))
}

// end is the end of a thread, as its process does it.
func end(ctx context.Context, t *tidy.Tidier, id thread.ID, as thread.State, spent thread.Micros) error {
	f := t.Threads.Finisher
	w, err := f.OpenTranscript(id, "")
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	rec, err := t.Threads.Store.Get(ctx, id)
	if err != nil {
		return err
	}
	if _, err = t.Threads.Records.Of(id).Artifacts().Write(artifactOf(id), []byte("an artifact of "+id)); err != nil {
		return err
	}
	_, err = f.Finish(ctx, t.Threads.Store.Runner(id, rec.Run), w, thread.Outcome{State: as, Result: "done"}, thread.Cost{Turns: 1, Spend: spent})
	return err
}

// artifactOf is the hash of the artifact of a thread.
func artifactOf(id thread.ID) string {
	sum := sha256.Sum256([]byte("an artifact of " + id))
	return hex.EncodeToString(sum[:])
}

// ended is a thread that has completed.
func (s *scene) ended(directive string, parent thread.ID) thread.ID {
	s.Helper()
	id := s.running(directive, parent)
	s.end(id, thread.Completed, 7)
	return id
}

// rendering is the path of the knowledge entry of a thread.
func (s *scene) rendering(id thread.ID) string {
	return filepath.Join(s.project, ".ai", "knowledge", "agent", "threads", string(id[:strings.LastIndex(string(id), "-1")]), filepath.Base(string(id))+".md")
}

func (s *scene) folder(id thread.ID) string { return string(folder.Of(placetest.Dir(s.project), id)) }

// delete deletes a thread as a person does who has agreed.
func (s *scene) delete(id thread.ID) tidy.Deleted {
	s.Helper()
	told, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true})
	s.noError(err)
	return told
}

// wantGone holds that nothing is left of threads.
func (s *scene) wantGone(ids ...thread.ID) {
	s.Helper()
	for _, id := range ids {
		if _, err := s.store.Get(s.ctx, id); err == nil || !strings.Contains(err.Error(), "was deleted") {
			s.Errorf("row of %s: %v", id, err)
		}
		if _, err := s.store.Budget(s.ctx, id); err == nil {
			s.Errorf("%s has a budget", id)
		}
		paths := []string{s.folder(id), s.rendering(id)}
		for _, kept := range keptFor {
			paths = append(paths, keptIn(s.project, kept, id))
		}
		for _, path := range paths {
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				s.Errorf("%s: %v", path, err)
			}
		}
	}
	open, err := s.store.Deletions(s.ctx, store.DeletionFilter{Open: true, IDs: ids})
	s.noError(err)
	if len(open) > 0 {
		s.Errorf("not ended: %+v", open)
	}
}

// wantWhole holds that all of a thread is there.
func (s *scene) wantWhole(ids ...thread.ID) {
	s.Helper()
	for _, id := range ids {
		_, err := s.store.Get(s.ctx, id)
		s.noError(err)
		_, err = s.t.Threads.Records.Of(id).Meta().Read()
		s.noError(err)
		_, err = s.t.Threads.Records.Of(id).Artifacts().Load(artifactOf(id))
		s.noError(err)
		_, err = os.Stat(s.rendering(id))
		s.noError(err)
		for _, kept := range keptFor {
			_, err = os.Stat(keptIn(s.project, kept, id))
			s.noError(err)
		}
	}
}

// wantSpent holds that a thread and all that was ever below it have spent so much, by
// every sum there is.
func (s *scene) wantSpent(id thread.ID, want, day thread.Micros) {
	s.Helper()
	b, tree, err := s.store.Tree(s.ctx, id)
	s.noError(err)
	st, err := s.store.Stats(s.ctx, store.StatsSince{Used: testTime, Created: testTime})
	s.noError(err)
	if b.Actual != want || tree.Actual != want || st.Spend != day {
		s.Errorf("spent %v by the budget, %v by the tree, %v on the day; want %v and %v", b.Actual, tree.Actual, st.Spend, want, day)
	}
}

func same(a, b []thread.ID) bool {
	return fmt.Sprint(slices.Sorted(slices.Values(a))) == fmt.Sprint(slices.Sorted(slices.Values(b)))
}
