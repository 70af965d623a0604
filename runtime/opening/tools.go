package opening

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/textcalls"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Toolbox is where the tools of threads come from.
type Toolbox struct {
	Resolver *resolve.Resolver
	Actions  *action.Actions
	Executor *executor.Executor
}

// Wanted is what decides about the tools of a thread.
type Wanted struct {
	Grant   permission.Grant
	Outputs []item.Output // of the directive
	// Room is the most that the tools may take, in tokens: the setting.
	Room int
	// Tokens is the limit of the thread. Every turn pays for the tools again, so what
	// nobody has named takes no more than a part of it.
	Tokens int64
}

// broadShare is the part of a tokens limit for tools that nobody has named.
const broadShare = 4

// Palette is what the model of a thread is offered.
func (b Toolbox) Palette(w Wanted) (palette.Palette, error) {
	threads, err := b.Actions.ThreadItems()
	if err != nil {
		return palette.Palette{}, err
	}
	// directive_return is offered by the palette itself, with the outputs of this
	// directive.
	threads = slices.DeleteFunc(threads, func(d tool.Definition) bool { return d.ID == action.DirectiveReturnID })
	allowed := func(id string) bool { return w.Grant.Allows(palette.Required(id)) }
	builtin := slices.Concat(threads, b.Executor.Definitions(allowed))
	items, err := palette.Spaces{
		Resolver: b.Resolver, Builtin: builtin,
		Check: func(found *resolve.Found) error { _, err := b.Executor.Of(found); return err },
	}.Items()
	if err != nil {
		return palette.Palette{}, err
	}
	offered := slices.DeleteFunc(slices.Clone(builtin), func(d tool.Definition) bool { return b.Executor.Idle(d.ID) })
	return palette.Build(palette.Input{
		ReadArtifact: tool.OutlineOf(artifact.New()), Primaries: outlines(b.Actions.Tools(action.Caller{})),
		Tools: offered, Items: items,
		Capabilities: w.Grant.Own, Idle: w.Grant.Dropped(), Missing: missing(w.Grant),
		Outputs: w.Outputs, MaxTokens: w.Room, MaxBroad: int(min(w.Tokens/broadShare, math.MaxInt32)),
	}), nil
}

// missing says who lacks a capability.
func missing(grant permission.Grant) func(required string) *palette.Denial {
	return func(required string) *palette.Denial {
		if denied := grant.Missing(required); denied != nil {
			return &palette.Denial{Ancestor: denied.Ancestor}
		}
		return nil
	}
}

// outlines are tools whose schemas a thread's model is told in a form of its own.
func outlines(tools []tool.Tool) []tool.Definition {
	list := make([]tool.Definition, len(tools))
	for i, t := range tools {
		list[i] = tool.OutlineOf(t)
	}
	return list
}

// Tools are the entries of a palette as a request has them.
func Tools(p palette.Palette) []llm.Tool {
	var tools []llm.Tool
	for _, e := range p.Entries {
		tools = append(tools, llm.Tool{Name: e.Name, Description: e.Definition.Description, Schema: bytes.ReplaceAll(e.Definition.Schema, closedMark, nil)})
	}
	return tools
}

// closedMark closes an object in a schema. A model is not told: what it gives beside the
// arguments that it is shown is answered with the nearest, and each request has the
// schemas of all its tools. Within a text the quotes would be escaped.
var closedMark = []byte(`,"additionalProperties":false`)

// SizeOf returns what tools take of a request to a model that uses tools that way, in
// bytes, which are no fewer than the tokens, and in characters.
func SizeOf(toolUse string) func([]llm.Tool) (bytes, characters int64) {
	if toolUse == config.ToolUseText {
		return textcalls.Size
	}
	return size
}

// toolMarks is more than the tokens that a provider puts around a tool.
const toolMarks = 64

// size is that of tools that are sent apart from the prompt.
func size(tools []llm.Tool) (bytes, characters int64) {
	for _, t := range tools {
		bytes += int64(toolMarks + len(t.Name) + len(t.Description) + len(t.Schema))
		characters += int64(utf8.RuneCountInString(t.Name) + utf8.RuneCountInString(t.Description) + utf8.RuneCount(t.Schema))
	}
	return bytes, characters
}
