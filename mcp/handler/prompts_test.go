package handler

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/spaces/watch"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const greeting = "# Greeting\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n<metadata>\n<description>Greets somebody</description>\n" +
	"<category>test</category>\n<author>us</author>\n<model tier=\"fast\"/>\n<limits turns=\"3\"/>\n<permissions/>\n</metadata>\n" +
	"<inputs><input name=\"who\" type=\"string\" required=\"true\" enum=\"Ada,Alan\">Whom</input><input name=\"times\" type=\"integer\" default=\"2\">How often</input></inputs>\n" +
	"</directive>\n```\n\nGreet {input:who} {input:times} times.\n"

// newPrompting is a project in which a greeting is offered, with signatures taken
// strictly, and a way to write and sign a directive.
func newPrompting(t *testing.T) (_ *Project, write func(id, content string)) {
	t.Helper()
	p := newFolder(t, map[string]string{".ai/directives/old.md": "nothing"})
	user := t.TempDir()
	key, err := sign.Generate(user, false, strings.NewReader(strings.Repeat("k", 64)))
	if err != nil {
		t.Fatal(err)
	}
	deps := p.Actions.Deps
	deps.Resolver = resolve.New(resolve.Roots{Project: p.Path, User: user, System: system.FS()})
	deps.Key = func() (*sign.Key, error) { return key, nil }
	deps.Trust = &trust.Gate{
		Roots: deps.Resolver.Roots(), Shipped: system.Has, Own: func() (*sign.PublicKey, error) { return key.Public(), nil },
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Strict}, nil },
	}
	p.Actions = action.New(deps)
	items := watch.NewShared(deps.Resolver.Roots())
	t.Cleanup(items.Close)
	p.Prompts = &prompt.Feed{Items: items, Library: &prompt.Library{
		Actions: p.Actions,
		Paths: func(ctx context.Context, prefix string, most int) ([]string, error) {
			return file.Complete(ctx, p.Path, user, prefix, most)
		},
		Threads: func(context.Context, string, int) ([]string, error) { return nil, nil },
	}}
	write = func(id, content string) {
		t.Helper()
		writeFiles(t, p.Path, map[string]string{".ai/directives/" + id + ".md": content})
		if _, err := p.Actions.Sign(t.Context(), action.Caller{Env: tool.Env{Project: p.Path}}, action.SignRequest{ItemType: "directive", ItemID: id}); err != nil {
			t.Fatal(err)
		}
	}
	write("team/greet", greeting)
	return p, write
}

func servePrompts(t *testing.T, projects Projects, opts ...servertest.Option) *servertest.Client {
	t.Helper()
	s := server.New(server.Options{Version: "test", MapError: action.Fault})
	s.OfferPrompts(Prompts(projects))
	return servertest.Start(t, s, opts...)
}

// request returns the answer, or the error, without what revision 2026-07-28 adds.
func request(t *testing.T, c *servertest.Client, method string, params map[string]any) string {
	t.Helper()
	raw, failed := c.Request(method, params)
	if failed != nil {
		text, err := json.Marshal(failed)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return string(raw)
}

func TestPrompts(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p, _ := newPrompting(t)
	for _, protocol := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		transport := servertest.Stdio
		if protocol == "2026-07-28" {
			transport = servertest.Stateless
		}
		c := servePrompts(t, oneProject{only: p}, servertest.Over(transport), servertest.Speaking(protocol))
		for _, tt := range []struct {
			method string
			params map[string]any
			want   string // in the answer
		}{
			{"prompts/list", map[string]any{}, `{"name":"team-greet","title":"Greeting","description":"Greets somebody",` +
				`"arguments":[{"name":"who","description":"Whom (one of Ada, Alan)","required":true},{"name":"times","description":"How often (integer; default 2)"}]}`},
			{"prompts/get", map[string]any{"name": "team-greet", "arguments": map[string]any{"who": "Ada"}},
				`"description":"Greets somebody","messages":[{"role":"user","content":{"type":"text","text":"Greet Ada 2 times."}}]`},
			{"prompts/get", map[string]any{"name": "team/greet", "arguments": map[string]any{"who": "Ada", "times": 3}}, `"text":"Greet Ada 3 times."`},
			{"prompts/get", map[string]any{"name": "team-greet"}, `-32602`},
			{"prompts/get", map[string]any{"name": "team-greet"}, `team/greet: who is required. Try: the arguments who (required): Whom`},
			{"prompts/get", map[string]any{"name": "team-greet", "arguments": map[string]any{"who": strings.Repeat("x", 1<<20)}}, `-32602`},
			{"prompts/get", map[string]any{"name": "nobody"}, `there is no prompt \"nobody\"`},
			{"prompts/get", map[string]any{}, `"code":-32`},
			{"prompts/get", map[string]any{"name": 3}, `"code":-32`},
			{"completion/complete", map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": "team-greet"}, "argument": map[string]any{"name": "who", "value": "al"}},
				`"completion":{"values":["Alan"]}`},
			{"completion/complete", map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": "nobody"}, "argument": map[string]any{"name": "who", "value": ""}},
				`"completion":{"values":[]}`},
		} {
			if got := request(t, c, tt.method, tt.params); !strings.Contains(got, tt.want) || len(got) > 4000 {
				t.Errorf("%s: %s %.80v\ngot  %.1500s\nwant %s", protocol, tt.method, tt.params, got, tt.want)
			}
		}
	}
}

// lost are projects of a client that works in none.
type lost struct{ err error }

func (lost) Several() bool { return false }

func (lost) Holding(context.Context, []thread.ID, func(string) bool) (*Project, error) {
	return nil, nil //nolint:nilnil // threads lead nowhere
}

func (l lost) Project(context.Context, string) (*Project, error) { return nil, l.err }

func TestPromptsWithoutProject(t *testing.T) {
	t.Parallel()
	c := servePrompts(t, lost{tool.Faultf(tool.CodeNoProject, "no project here")})
	if got := request(t, c, "prompts/list", nil); !strings.Contains(got, `"prompts":[]`) {
		t.Errorf("the list is %s", got)
	}
	if got := request(t, c, "prompts/get", map[string]any{"name": "x"}); !strings.Contains(got, "no project here") {
		t.Errorf("one is %s", got)
	}
	c = servePrompts(t, lost{errors.New("boom")})
	if got := request(t, c, "prompts/list", nil); !strings.Contains(got, "-32603") {
		t.Errorf("the list of a project that does not open is %s", got)
	}
}

func TestPromptListChanges(t *testing.T) {
	t.Parallel()
	p, write := newPrompting(t)
	told := make(chan struct{}, 9)
	c := servePrompts(t, oneProject{only: p}, servertest.OnNotification(func(method string, _ json.RawMessage) {
		if method == "notifications/prompts/list_changed" {
			told <- struct{}{}
		}
	}))
	if got := request(t, c, "prompts/list", nil); strings.Contains(got, "team-second") {
		t.Fatal(got)
	}
	write("team/second", strings.ReplaceAll(greeting, "greet", "second"))
	<-told
	if got := request(t, c, "prompts/list", nil); !strings.Contains(got, "team-second") {
		t.Errorf("after the change: %s", got)
	}
	if err := os.Remove(filepath.Join(p.Path, ".ai/directives/team/second.md")); err != nil {
		t.Fatal(err)
	}
	<-told
}
