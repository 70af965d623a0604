// Package handlertest is a project for tests of what stands on [handler.Project]: with a
// real store and real records, and threads that have no process.
package handlertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

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
)

// Scene is a project whose threads have no process of their own: this one holds their
// lives. Its items need no signatures.
type Scene struct {
	testing.TB
	Ctx     context.Context //nolint:containedctx // of the test
	Store   store.Store
	Project *handler.Project
	Roots   resolve.Roots
	Now     time.Time   // for the controller and for what the scene does
	InIndex search.Page // what the index has of threads

	life  *life.Local
	lives map[thread.ID]life.Hold
}

// New makes a project of files, by their paths.
func New(t testing.TB, files map[string]string) *Scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &Scene{
		TB: t, Ctx: ctx, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Project: &handler.Project{Path: dir},
		Roots: resolve.Roots{Project: dir, User: t.TempDir(), System: system.FS()}, lives: map[thread.ID]life.Hold{},
	}
	s.Write(files)
	s.connect()
	return s
}

// connect opens the store and makes controller and primary actions.
func (s *Scene) connect() {
	s.Helper()
	state, err := placetest.Make(s.Project.Path, s.Roots.User)
	s.noError(err)
	s.Store, err = sqlite.Open(s.Ctx, state.Dir, sqlite.Options{Mark: state.Seal.Mark})
	s.noError(err)
	home := folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()
	s.life = &life.Local{Project: s.Project.Path, Home: home, Place: process.Here("here"), Args: func(thread.ID) []string { return []string{"none"} }}
	unchecked := &trust.Gate{
		Roots: s.Roots, Shipped: system.Has, Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil },
		Own: func() (*sign.PublicKey, error) { return nil, nil },
	}
	s.Project.Control = control.New(control.Deps{
		Project: s.Project.Path, Store: s.Store, Resolver: resolve.New(s.Roots), Config: config.New(s.Roots), Trust: unchecked,
		Records: records.Local{Home: home}, Key: func() (*sign.Key, error) { return nil, sign.ErrNoKey },
		Providers: provider.NewSource(func(string) string { return "" }), Now: func() time.Time { return s.Now }, Life: s.life, Log: zerolog.Nop(),
	})
	s.Project.Control.Changes.Every = time.Millisecond
	s.Project.Actions = action.New(action.Deps{
		Resolver: resolve.New(s.Roots), Trust: unchecked, Now: time.Now,
		Search: func(context.Context, search.Query) (search.Page, error) { return s.InIndex, nil },
	})
	s.Cleanup(func() {
		if err := s.Project.Control.Close(); err != nil {
			s.Error(err)
		}
	})
}

func (s *Scene) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Write writes files of the project.
func (s *Scene) Write(files map[string]string) {
	s.Helper()
	for name, content := range files {
		path := filepath.Join(s.Project.Path, filepath.FromSlash(name))
		s.noError(os.MkdirAll(filepath.Dir(path), 0o700))
		s.noError(os.WriteFile(path, []byte(content), 0o600))
	}
}

// Start has a thread run.
func (s *Scene) Start(directive string) thread.ID {
	s.Helper()
	run := thread.NewRun()
	rec, _, err := store.Register(s.Ctx, s.Store, store.NewThread{
		Kind: thread.KindDirective, Directive: directive, Model: "fake/model", Now: s.Now, Run: run,
	}, func(id thread.ID) error {
		if err := s.Project.Control.Threads.Records.Of(id).Prepare(); err != nil {
			return err
		}
		hold, err := s.life.Claim(life.Key{Thread: id, Run: run})
		if err == nil {
			s.lives[id] = hold
			s.Cleanup(func() { _ = hold.Release() })
		}
		return err
	})
	s.noError(err)
	s.Apply(store.Claimed(rec.ThreadID, thread.Process{PID: os.Getpid(), Host: "here"}, s.Now))
	return rec.ThreadID
}

// runner writes as the run that has a thread.
func (s *Scene) runner(id thread.ID) store.Runner {
	s.Helper()
	rec, err := s.Store.Get(s.Ctx, id)
	s.noError(err)
	return s.Store.Runner(id, rec.Run)
}

// Apply makes a change as the run that has the thread.
func (s *Scene) Apply(c store.Change) {
	s.Helper()
	_, err := s.runner(c.ID()).Apply(s.Ctx, c)
	s.noError(err)
}

// Turn records that a thread has worked.
func (s *Scene) Turn(id thread.ID, turns int) {
	s.Helper()
	s.noError(s.runner(id).RecordCost(s.Ctx, thread.Cost{Turns: turns}, int64(turns)))
}

// End ends a thread, whose life is free then.
func (s *Scene) End(id thread.ID, o thread.Outcome) {
	s.Helper()
	c, err := store.Finished(id, o, nil, s.Now)
	s.noError(err)
	s.Apply(c)
	s.noError(s.lives[id].Release())
}

// Record writes events into the transcript of a thread.
func (s *Scene) Record(id thread.ID, write func(w *transcript.Writer) error) {
	s.Helper()
	w, err := transcript.Open(s.Project.Control.Threads.Transcript(id), id, transcript.Options{Now: func() time.Time { return s.Now }})
	if err == nil {
		err = errors.Join(write(w), w.Close())
	}
	s.noError(err)
}
