package resource_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/handler/handlertest"
	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/mcp/resource"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/watch"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a server's projects: one, with threads that have no process.
type scene struct{ *handlertest.Scene }

func (s *scene) Project(_ context.Context, path string) (*handler.Project, error) {
	if path != "" && path != s.Scene.Project.Path {
		return nil, tool.Faultf(tool.CodeNoProject, "no project %s", path)
	}
	return s.Scene.Project, nil
}

func (s *scene) Several() bool { return false }

func (s *scene) Holding(context.Context, []thread.ID, func(string) bool) (*handler.Project, error) {
	return nil, nil //nolint:nilnil // threads lead nowhere
}

func newScene(t testing.TB, files map[string]string) *scene {
	t.Helper()
	s := &scene{handlertest.New(t, files)}
	items := watch.NewShared(s.Roots)
	t.Cleanup(items.Close)
	s.Scene.Project.Prompts = &prompt.Feed{Items: items, Library: &prompt.Library{
		Actions: s.Scene.Project.Actions, Threads: func(ctx context.Context, prefix string, most int) ([]string, error) {
			rows, _, err := s.Store.List(ctx, store.Filter{Text: prefix, Limit: most})
			var ids []string
			for _, rec := range rows {
				ids = append(ids, string(rec.ThreadID))
			}
			return ids, err
		},
	}}
	return s
}

// say writes into the transcript of a thread.
func (s *scene) say(id thread.ID, text string) {
	s.Helper()
	s.Record(id, func(w *transcript.Writer) error {
		return w.Append(thread.EventSystemPrompt, transcript.SystemPrompt{Text: text})
	})
}

// connect returns a client of a server that offers the resources.
func (s *scene) connect(opts ...servertest.Option) *servertest.Client {
	s.Helper()
	return connect(s, s, opts...)
}

func connect(t testing.TB, projects handler.Projects, opts ...servertest.Option) *servertest.Client {
	t.Helper()
	srv := server.New(server.Options{Version: "test", MapError: action.Fault})
	srv.OfferResources(&resource.Resources{Projects: projects})
	return servertest.Start(t, srv, opts...)
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
