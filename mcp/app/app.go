// Package app is the board as an MCP App (revision 2026-01-26): clients that show apps show
// the page's own modules in a frame without network. The frame asks through its host for
// what the page asks its API: by tools that only the app calls, and that only clients are
// offered which show apps. Its actions count as done by the client, and never by a
// person.
package app

import (
	"context"
	_ "embed" // transport.js
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/page"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// URI is where clients read the app.
const URI = "ui://rye/board"

// The tools of the app.
const (
	lookTool = "rye_app_look"
	actTool  = "rye_app_act"
)

// Options are what an app is made of.
type Options struct {
	Projects handler.Projects
	Version  string
	Now      func() time.Time
	Log      zerolog.Logger
}

// Offer adds the app to a server that offers resources already, before the first client
// comes.
func Offer(s *server.Server, o Options) {
	p := page.New(page.Options{Projects: projects{o.Projects}, Version: o.Version, Now: o.Now, Log: o.Log})
	add(s, p, lookTool, "What the board of the app shows: a path of its API.", http.MethodGet, pathSchema,
		server.Annotations{Title: "Look at threads", ReadOnly: true, Idempotent: true})
	add(s, p, actTool, "What a button of the board does: a path of its API with a body.", http.MethodPost, bodySchema,
		server.Annotations{Title: "Act on threads", Destructive: true})
	s.OfferApp(URI, operation.ListThreads.Name)
}

// Reading is the document of the app.
func Reading() (server.Reading, error) {
	text, err := document()
	if err != nil {
		return server.Reading{}, err
	}
	return server.Reading{
		Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: URI, MIMEType: server.AppType, Text: text, Meta: map[string]any{
			"ui": map[string]any{"prefersBorder": true},
		}}},
		Keep: 10 * time.Minute, Shared: true,
	}, nil
}

const (
	pathSchema = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`
	bodySchema = `{"type":"object","properties":{"path":{"type":"string"},"body":{"type":"object"}},"required":["path"],"additionalProperties":false}`
	// answerSchema is that of [answer].
	answerSchema = `{"type":"object","properties":{"success":{"type":"boolean"},"status":{"type":"integer"},"type":{"type":"string"},"text":{"type":"string"},` +
		`"base64":{"type":"string"},"code":{"type":"string"},"error":{"type":"string"},"hint":{"type":"string"}},"required":["success"]}`
)

// answer is what the API has answered.
type answer struct {
	Success bool   `json:"success"`
	Status  int    `json:"status"`
	Type    string `json:"type"`
	Text    string `json:"text,omitempty"`
	Base64  string `json:"base64,omitempty"` // of what is no text
}

func add(s *server.Server, p *page.Page, name, description, method, schema string, a server.Annotations) {
	server.AddUntyped(s, server.Untyped{
		Name: name, Description: description, Annotations: a, Meta: server.AppOnly(URI), Whole: true,
		Input:  func(...tool.Text) (json.RawMessage, error) { return json.RawMessage(schema), nil },
		Output: func() (json.RawMessage, error) { return json.RawMessage(answerSchema), nil },
		Bind: func(json.RawMessage) func(context.Context, server.Call, json.RawMessage) (any, error) {
			return func(ctx context.Context, call server.Call, args json.RawMessage) (any, error) {
				var in struct {
					Path string          `json:"path"`
					Body json.RawMessage `json:"body"`
				}
				if err := json.Unmarshal(args, &in); err != nil || in.Path == "" {
					return nil, tool.Faultf(tool.CodeBadArguments, "path is a path of the board's API, such as board")
				}
				by := func(p *handler.Project) action.Caller { return handler.CallerOf(p, call) }
				got, err := p.Ask(ctx, by, method, in.Path, in.Body)
				if err != nil {
					return nil, err
				}
				return answered(got), nil
			}
		},
	})
}

func answered(got page.Answer) answer {
	a := answer{Success: got.Status < http.StatusBadRequest, Status: got.Status, Type: got.Type}
	if utf8.Valid(got.Body) {
		a.Text = string(got.Body)
	} else {
		a.Base64 = base64.StdEncoding.EncodeToString(got.Body)
	}
	return a
}

// projects are the one project that the client of a call works in.
type projects struct{ handler.Projects }

// List implements [page.Projects]: the app names none.
func (p projects) List() []page.Named { return []page.Named{} }

// Open implements [page.Projects].
func (p projects) Open(ctx context.Context, _ string) (*page.Project, error) {
	found, err := p.Project(ctx, "")
	if err != nil {
		return nil, err
	}
	return &page.Project{Project: found, Export: func(context.Context, thread.ID, page.Scope) ([]byte, error) {
		return nil, tool.Faultf(tool.CodeUnsupported, "an app gives out no files").WithTry("rye-mcp threads export")
	}}, nil
}

// Resources are those of a server, and the document of the app.
type Resources struct{ server.Resources }

// Read implements [server.Resources].
func (r Resources) Read(ctx context.Context, call server.Call, uri string) (server.Reading, error) {
	if strings.TrimSpace(uri) == URI {
		return Reading()
	}
	return r.Resources.Read(ctx, call, uri)
}
