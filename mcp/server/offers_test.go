package server_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// offers are prompts and resources that a test changes.
type offers struct {
	mu      sync.Mutex
	watched map[string][]func() // by URI, "prompts" and "resources"
	stopped int
}

// change tells whoever watches what a key names.
func (o *offers) change(key string) {
	o.mu.Lock()
	watchers := slices.Clone(o.watched[key])
	o.mu.Unlock()
	for _, changed := range watchers {
		if changed != nil {
			changed()
		}
	}
}

// watching is how many watch at all.
func (o *offers) watching() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := -o.stopped
	for _, watchers := range o.watched {
		n += len(watchers)
	}
	return n
}

func (o *offers) watch(key string, changed func()) (func(), error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watched == nil {
		o.watched = map[string][]func(){}
	}
	i := len(o.watched[key])
	o.watched[key] = append(o.watched[key], changed)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.watched[key][i] = nil
		o.stopped++
	}, nil
}

// newOfferingServer is newServer with prompts and resources.
func newOfferingServer() (*server.Server, *offers) {
	o := &offers{}
	s := newServer()
	s.OfferPrompts(fakePrompts{o})
	s.OfferResources(fakeResources{o})
	return s, o
}

type fakePrompts struct{ *offers }

func (fakePrompts) List(context.Context, server.Call) ([]mcp.Prompt, error) {
	return []mcp.Prompt{{Name: "greet", Description: "Greets.", Arguments: []mcp.PromptArgument{{Name: "who", Required: true}}}}, nil
}

func (fakePrompts) Get(_ context.Context, call server.Call, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	if name != "greet" {
		return nil, tool.Faultf(tool.CodeNotFound, "there is no prompt %q", name).WithHint("prompts/list shows them").With("nearest_ids", []string{"greet"})
	}
	return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{
		{Role: mcp.RoleUser, Content: mcp.NewTextContent("Greet " + args["who"] + " of " + call.Session.Client + ".")},
	}}, nil
}

func (fakePrompts) Complete(_ context.Context, _ server.Call, name string, c server.Completing) (mcp.Completion, error) {
	return mcp.Completion{Values: []string{name + " " + c.Argument + " " + c.Value + " " + c.Others["with"]}}, nil
}

func (f fakePrompts) Watch(_ context.Context, _ server.Call, changed func()) (func(), error) {
	return f.watch("prompts", changed)
}

type fakeResources struct{ *offers }

func (fakeResources) List(_ context.Context, _ server.Call, cursor string) ([]mcp.Resource, string, error) {
	next := ""
	if cursor == "" {
		next = "2"
	}
	return []mcp.Resource{{URI: "test://a" + cursor, Name: "a" + cursor}}, next, nil
}

func (fakeResources) Templates() []mcp.ResourceTemplate {
	return []mcp.ResourceTemplate{mcp.NewResourceTemplate("test://{+name}", "any")}
}

func (fakeResources) Read(_ context.Context, _ server.Call, uri string) (server.Reading, error) {
	if !strings.HasPrefix(uri, "test://") {
		return server.Reading{}, &server.NotFoundError{URI: uri, Err: tool.Faultf(tool.CodeNotFound, "there is no resource %s", uri).WithHint("valid are test://NAME")}
	}
	return server.Reading{
		Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, Text: "text of " + uri}}, Keep: time.Second,
	}, nil
}

func (fakeResources) Complete(_ context.Context, _ server.Call, template string, c server.Completing) (mcp.Completion, error) {
	values := make([]string, 150)
	for i := range values {
		values[i] = template + c.Value
	}
	return mcp.Completion{Values: values}, nil
}

func (f fakeResources) WatchList(_ context.Context, _ server.Call, changed func()) (func(), error) {
	return f.watch("resources", changed)
}

func (f fakeResources) Watch(_ context.Context, _ server.Call, uri string, changed func()) (func(), error) {
	if !strings.HasPrefix(uri, "test://") {
		return nil, &server.NotFoundError{URI: uri, Err: tool.Faultf(tool.CodeNotFound, "there is no resource %s", uri)}
	}
	return f.watch(uri, changed)
}
