package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a project whose threads have no process of their own: this one holds their
// lives.
type scene struct {
	testing.TB
	ctx     context.Context //nolint:containedctx // of the test
	store   *sqlite.Store
	life    *life.Local
	now     time.Time
	project *handler.Project
	inIndex search.Page // what the index has of threads
	lives   map[thread.ID]life.Hold
}

// List implements [Projects].
func (s *scene) List() []Named { return []Named{{Name: "here", Path: s.project.Path}} }

// Open implements [Projects].
func (s *scene) Open(_ context.Context, name string) (*Project, error) {
	if name != "" && name != "here" {
		return nil, tool.Faultf(tool.CodeNoProject, "the page shows no project %q", name)
	}
	return &Project{Name: "here", Project: s.project, Export: func(_ context.Context, id thread.ID, scope Scope) ([]byte, error) {
		return fmt.Appendf(nil, "%s %+v", id, scope), nil
	}}, nil
}

func newScene(t testing.TB, files map[string]string) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &scene{TB: t, ctx: ctx, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), project: &handler.Project{Path: dir}, lives: map[thread.ID]life.Hold{}}
	s.write(files)
	roots := resolve.Roots{Project: dir, User: t.TempDir(), System: system.FS()}
	state, err := placetest.Make(dir, roots.User)
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = sqlite.Open(ctx, state.Dir, sqlite.Options{Mark: state.Seal.Mark}); err != nil {
		t.Fatal(err)
	}
	home := folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()
	s.life = &life.Local{Project: dir, Home: home, Place: process.Here("here")}
	unchecked := &trust.Gate{
		Roots: roots, Shipped: system.Has, Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil },
		Own: func() (*sign.PublicKey, error) { return nil, nil },
	}
	s.project.Control = control.New(control.Deps{
		Project: dir, Store: s.store, Resolver: resolve.New(roots), Config: config.New(roots), Trust: unchecked, Records: records.Local{Home: home},
		Key: func() (*sign.Key, error) { return nil, sign.ErrNoKey }, Providers: provider.NewSource(func(string) string { return "" }),
		Now: func() time.Time { return s.now }, Life: s.life, Log: zerolog.Nop(),
	})
	s.project.Control.Changes.Every = time.Millisecond
	s.project.Actions = action.New(action.Deps{
		Resolver: resolve.New(roots), Trust: unchecked, Now: time.Now,
		Search: func(context.Context, search.Query) (search.Page, error) { return s.inIndex, nil },
	})
	t.Cleanup(func() {
		if err := s.project.Control.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scene) write(files map[string]string) {
	s.Helper()
	for name, content := range files {
		path := filepath.Join(s.project.Path, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// start has a thread run.
func (s *scene) start(directive string) thread.ID {
	s.Helper()
	run := thread.NewRun()
	rec, _, err := store.Register(s.ctx, s.store, store.NewThread{
		Kind: thread.KindDirective, Directive: directive, Model: "fake/model", Now: s.now, Run: run,
	}, func(id thread.ID) error {
		if err := s.project.Control.Threads.Records.Of(id).Prepare(); err != nil {
			return err
		}
		hold, err := s.life.Claim(life.Key{Thread: id, Run: run})
		if err == nil {
			s.lives[id] = hold
			s.Cleanup(func() { _ = hold.Release() })
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	s.apply(store.Claimed(rec.ThreadID, thread.Process{PID: os.Getpid(), Host: "here"}, s.now))
	return rec.ThreadID
}

func (s *scene) apply(c store.Change) {
	s.Helper()
	rec, err := s.store.Get(s.ctx, c.ID())
	if err == nil {
		_, err = s.store.Runner(c.ID(), rec.Run).Apply(s.ctx, c)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// record writes events into the transcript of a thread.
func (s *scene) record(id thread.ID, write func(w *transcript.Writer) error) {
	s.Helper()
	w, err := transcript.Open(s.project.Control.Threads.Transcript(id), id, transcript.Options{Now: func() time.Time { return s.now }})
	if err == nil {
		err = errors.Join(write(w), w.Close())
	}
	if err != nil {
		s.Fatal(err)
	}
}

// turn records that a thread has worked.
func (s *scene) turn(id thread.ID, turns int) {
	s.Helper()
	rec, err := s.store.Get(s.ctx, id)
	if err == nil {
		err = s.store.Runner(id, rec.Run).RecordCost(s.ctx, thread.Cost{Turns: turns}, int64(turns))
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) end(id thread.ID, o thread.Outcome) {
	s.Helper()
	c, err := store.Finished(id, o, nil, s.now)
	if err != nil {
		s.Fatal(err)
	}
	s.apply(c)
	if err := s.lives[id].Release(); err != nil {
		s.Fatal(err)
	}
}
