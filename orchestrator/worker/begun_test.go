package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// newProject is a project without threads. What a lease holds is said by the test.
func newProject(t *testing.T, held func() []fleet.Thread) *worker.Project {
	t.Helper()
	dir := t.TempDir()
	roots := resolve.Roots{Project: dir, User: t.TempDir(), System: system.FS()}
	state, err := placetest.Make(dir, roots.User)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := sqlite.Open(t.Context(), state.Dir, sqlite.Options{Mark: state.Seal.Mark})
	if err != nil {
		t.Fatal(err)
	}
	home := folder.Home{Dir: state.Dir, Seal: state.Seal}.Always()
	c := control.New(control.Deps{
		Project: dir, Store: rows, Resolver: resolve.New(roots), Config: config.New(roots), Trust: &trust.Gate{
			Roots: roots, Shipped: system.Has, Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil },
			Own: func() (*sign.PublicKey, error) { return nil, nil },
		},
		Records: records.Local{Home: home}, Key: func() (*sign.Key, error) { return nil, sign.ErrNoKey },
		Providers: provider.NewSource(func(string) string { return "" }), Now: time.Now, Log: zerolog.Nop(),
		Life: &life.Local{Project: dir, Home: home, Place: process.Here("here"), Args: func(thread.ID) []string { return []string{"none"} }},
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &worker.Project{
		Name: "p", Threads: c.Threads, Queue: c.Queue, Stop: c.Stop, Tidy: c.Tidy,
		Held: func(context.Context, thread.Incarnation) ([]fleet.Thread, error) { return held(), nil },
	}
}

// TestThreadBegunAtTheEnd: the queue begins a thread behind the look at which a worker finds
// that it runs nothing. The worker stays until that thread has ended.
func TestThreadBegunAtTheEnd(t *testing.T) {
	t.Parallel()
	pool := pgstoretest.Connect(t).Pool()
	for _, ends := range []worker.Ends{{WhenIdle: true}, {Drain: closed()}} {
		var begun atomic.Bool
		var looks atomic.Int64 // until the thread has ended
		looks.Store(4)
		p := newProject(t, func() []fleet.Thread {
			if !begun.Load() || looks.Add(-1) < 0 {
				return nil
			}
			return []fleet.Thread{{ID: "late-1"}}
		})
		w := &worker.Worker{
			Log: zerolog.Nop(), Self: fleet.Worker{Name: "w", Slots: 1, Projects: []string{"p"}}, Fleet: &fleet.Fleet{Pool: pool},
			Kill: func(context.Context, thread.Incarnation) error {
				t.Error("it kills")
				return nil
			},
			Deliver: func(context.Context, *worker.Worker) (func(context.Context) error, error) {
				return func(context.Context) error { begun.Store(true); return nil }, nil // which comes behind that look
			},
			Projects: []*worker.Project{p},
		}
		if err := w.Run(t.Context(), ends); err != nil {
			t.Fatal(err)
		}
		if left := looks.Load(); left >= 0 {
			t.Errorf("%+v: the worker left %d looks before its thread had ended", ends, left+1)
		}
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
