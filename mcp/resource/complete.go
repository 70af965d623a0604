package resource

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Variables of the templates that have values to propose.
const (
	variableID   = "id"
	variableType = "type"
)

const (
	// maxTyped is how long a text may be that is completed, in bytes: no id is longer.
	maxTyped = 512
	// maxProposed is how many ids are looked for; one more tells that there are more.
	maxProposed = 100
)

// Complete implements [server.Resources]: ids of threads, newest first, types and ids of
// items. It proposes nothing where there is no project, and for what has no values.
func (r *Resources) Complete(ctx context.Context, _ server.Call, uri string, c server.Completing) (mcp.Completion, error) {
	known := slices.IndexFunc(templates(), func(t template) bool { return t.uri == uri || short(t.uri) == uri })
	if known < 0 {
		return mcp.Completion{}, unknownTemplate(uri)
	}
	if len(c.Value) > maxTyped {
		return mcp.Completion{}, tool.Faultf(tool.CodeBadArguments, "the text to complete has %d bytes; at most %d are completed", len(c.Value), maxTyped)
	}
	isItem := strings.HasPrefix(uri, Scheme+string(Item))
	if isItem && c.Argument == variableType {
		return proposed(kinds(c.Value)), nil
	}
	if c.Argument != variableID {
		return mcp.Completion{}, nil
	}
	p, err := r.Projects.Project(ctx, "")
	if err != nil {
		return mcp.Completion{}, nil //nolint:nilerr // somebody is typing
	}
	ids, err := idsOf(ctx, p, isItem, c)
	return proposed(ids), err
}

func idsOf(ctx context.Context, p *handler.Project, items bool, c server.Completing) ([]string, error) {
	typed, err := decode(c.Value)
	if err != nil {
		typed = c.Value // it may be half of an escape
	}
	if !items {
		return p.Prompts.Threads(ctx, typed, maxProposed+1)
	}
	kind, err := item.ParseKind(c.Others[variableType])
	if err != nil {
		kind = "" // not chosen yet
	}
	return p.Prompts.Library.Items(ctx, kind, typed, maxProposed+1)
}

func kinds(prefix string) (names []string) {
	for _, k := range item.Kinds() {
		if strings.HasPrefix(string(k), prefix) {
			names = append(names, string(k))
		}
	}
	return names
}

// proposed are values as they stand in a URI: characters that a template leaves as they are
// must not end the path.
func proposed(values []string) mcp.Completion {
	c := mcp.Completion{HasMore: len(values) > maxProposed}
	for _, v := range values[:min(len(values), maxProposed)] {
		c.Values = append(c.Values, strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(v))
	}
	return c
}

// short is a template without its parameters.
func short(template string) string {
	path, _, _ := strings.Cut(template, "{?")
	return path
}

func unknownTemplate(uri string) *tool.Fault {
	f := unknown(uri, "")
	f.Code = tool.CodeBadArguments
	return f
}
