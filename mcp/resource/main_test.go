package resource_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/mcp/resource"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
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
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/spaces/watch"
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
}

func (s *scene) Project(_ context.Context, path string) (*handler.Project, error) {
	if path != "" && path != s.project.Path {
		return nil, tool.Faultf(tool.CodeNoProject, "no project %s", path)
	}
	return s.project, nil
}

func (s *scene) Several() bool { return false }

func (s *scene) Holding(context.Context, []thread.ID) *handler.Project { return nil }

func newScene(t testing.TB, files map[string]string) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &scene{TB: t, ctx: ctx, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), project: &handler.Project{Path: dir}}
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
	s.project.Actions = action.New(action.Deps{Resolver: resolve.New(roots), Trust: unchecked, Now: time.Now})
	items := watch.NewShared(roots)
	s.project.Prompts = &prompt.Feed{Items: items, Library: &prompt.Library{
		Actions: s.project.Actions, Threads: func(ctx context.Context, prefix string, most int) ([]string, error) {
			rows, _, err := s.store.List(ctx, store.Filter{Text: prefix, Limit: most})
			var ids []string
			for _, rec := range rows {
				ids = append(ids, string(rec.ThreadID))
			}
			return ids, err
		},
	}}
	t.Cleanup(func() {
		items.Close()
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

// say writes into the transcript of a thread.
func (s *scene) say(id thread.ID, text string) {
	s.Helper()
	w, err := transcript.Open(s.project.Control.Threads.Transcript(id), id, transcript.Options{Now: func() time.Time { return s.now }})
	if err != nil {
		s.Fatal(err)
	}
	if err := w.Append(thread.EventSystemPrompt, transcript.SystemPrompt{Text: text}); err != nil {
		s.Fatal(err)
	}
	if err := w.Close(); err != nil {
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
}

// connect returns a client of a server that offers the resources.
func (s *scene) connect(opts ...servertest.Option) *servertest.Client {
	s.Helper()
	srv := server.New(server.Options{Version: "test", MapError: action.Fault})
	srv.OfferResources(&resource.Resources{Projects: s})
	return servertest.Start(s, srv, opts...)
}

// read reads a resource, which must be there.
func read(t testing.TB, c *servertest.Client, uri string) reading {
	t.Helper()
	raw, rpcErr := c.Request("resources/read", map[string]any{"uri": uri})
	if rpcErr != nil {
		t.Fatalf("%s: %v", uri, rpcErr)
	}
	var r reading
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

type reading struct {
	Contents []content `json:"contents"`
	TTL      *int64    `json:"ttlMs"`
	Scope    string    `json:"cacheScope"`
}

type content struct {
	URI  string         `json:"uri"`
	MIME string         `json:"mimeType"`
	Text string         `json:"text"`
	Meta map[string]any `json:"_meta"`
}
