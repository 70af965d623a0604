package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// prompts are those of the scenarios, and one that comes and goes.
type prompts struct {
	mu       sync.Mutex
	more     bool
	watching map[int]func()
	next     int
}

// change adds a prompt to the list, or takes it away, and tells.
func (p *prompts) change() {
	p.mu.Lock()
	p.more = !p.more
	tell := slices.Collect(maps.Values(p.watching))
	p.mu.Unlock()
	for _, changed := range tell {
		changed()
	}
}

func (p *prompts) List(context.Context, server.Call) ([]mcp.Prompt, error) {
	required := func(name string) mcp.PromptArgument {
		return mcp.PromptArgument{Name: name, Description: "For the scenario", Required: true}
	}
	list := []mcp.Prompt{
		{Name: "test_simple_prompt", Description: "Says one thing"},
		{Name: "test_prompt_with_arguments", Description: "Says what it is given", Arguments: []mcp.PromptArgument{required("arg1"), required("arg2")}},
		{Name: "test_prompt_with_embedded_resource", Description: "Shows a resource", Arguments: []mcp.PromptArgument{required("resourceUri")}},
		{Name: "test_prompt_with_image", Description: "Shows a picture"},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.more {
		list = append(list, mcp.Prompt{Name: "test_changed", Description: "Comes and goes"})
	}
	return list, nil
}

func (p *prompts) Get(_ context.Context, _ server.Call, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	text := func(text string) mcp.PromptMessage {
		return mcp.PromptMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}
	}
	var messages []mcp.PromptMessage
	switch name {
	case "test_simple_prompt":
		messages = append(messages, text("This is a simple prompt for testing."))
	case "test_prompt_with_arguments":
		messages = append(messages, text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])))
	case "test_prompt_with_embedded_resource":
		embedded := mcp.NewEmbeddedResource(mcp.TextResourceContents{
			URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing.",
		})
		messages = append(messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: embedded}, text("Please process the embedded resource above."))
	case "test_prompt_with_image":
		picture := mcp.NewImageContent(base64.StdEncoding.EncodeToString(pixel()), "image/png")
		messages = append(messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: picture}, text("Please analyze the image above."))
	default:
		return nil, tool.Faultf(tool.CodeNotFound, "there is no prompt %q", name)
	}
	return &mcp.GetPromptResult{Messages: messages}, nil
}

func (p *prompts) Complete(_ context.Context, _ server.Call, _ string, c server.Completing) (mcp.Completion, error) {
	return mcp.Completion{Values: []string{c.Value + "-completed"}}, nil
}

func (p *prompts) Watch(_ context.Context, _ server.Call, changed func()) (func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watching == nil {
		p.watching = map[int]func(){}
	}
	id := p.next
	p.next++
	p.watching[id] = changed
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watching, id)
	}, nil
}

// resources are those of the scenarios, which never change.
type resources struct{}

const watched = "test://watched-resource"

func (resources) List(context.Context, server.Call, string) ([]mcp.Resource, string, error) {
	return []mcp.Resource{
		mcp.NewResource("test://static-text", "static-text", mcp.WithResourceDescription("A text"), mcp.WithMIMEType("text/plain")),
		mcp.NewResource("test://static-binary", "static-binary", mcp.WithResourceDescription("A picture"), mcp.WithMIMEType("image/png")),
		mcp.NewResource(watched, "watched-resource", mcp.WithResourceDescription("A text that is subscribed to"), mcp.WithMIMEType("text/plain")),
	}, "", nil
}

func (resources) Templates() []mcp.ResourceTemplate {
	return []mcp.ResourceTemplate{mcp.NewResourceTemplate("test://template/{id}/data", "template", mcp.WithTemplateDescription("Data of an id"))}
}

func (resources) Read(_ context.Context, _ server.Call, uri string) (server.Reading, error) {
	if id, ok := strings.CutPrefix(uri, "test://template/"); ok && strings.HasSuffix(id, "/data") {
		text := fmt.Sprintf(`{"id":%q,"templateTest":true}`, strings.TrimSuffix(id, "/data"))
		return server.Reading{Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "application/json", Text: text}}}, nil
	}
	switch uri {
	case "test://static-text", watched:
		text := mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is the content of the static text resource."}
		return server.Reading{Contents: []mcp.ResourceContents{text}}, nil
	case "test://static-binary":
		picture := mcp.BlobResourceContents{URI: uri, MIMEType: "image/png", Blob: base64.StdEncoding.EncodeToString(pixel())}
		return server.Reading{Contents: []mcp.ResourceContents{picture}}, nil
	}
	return server.Reading{}, &server.NotFoundError{URI: uri, Err: tool.Faultf(tool.CodeNotFound, "there is no resource %q", uri)}
}

func (resources) Complete(context.Context, server.Call, string, server.Completing) (mcp.Completion, error) {
	return mcp.Completion{Values: []string{"123"}}, nil
}

func (resources) WatchList(context.Context, server.Call, func()) (func(), error) {
	return func() {}, nil
}

func (resources) Watch(context.Context, server.Call, string, func()) (func(), error) {
	return func() {}, nil
}
