package loop

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Models are those that a thread can ask; *[provider.Registry] implements it.
type Models interface {
	Choose(ctx context.Context, w provider.Want) (provider.Choice, error)
	Fallback(ctx context.Context, w provider.Want) (provider.Choice, bool, error)
	Open(ctx context.Context, c provider.Choice) (llm.Client, func() error, error)
}

// Recorded is what a thread that is replayed goes by in place of the world: none of its
// tools is run, its hooks start nothing, nobody is asked, and nothing is waited for. Its
// answers of the model are those of its client.
type Recorded interface {
	// Call is what a tool call gave. Refused is what the thread would be told today
	// before the tool is run; nil: the tool would be run.
	Call(c llm.Block, refused *tool.Fault) RecordedResult
	// Action is what an action of a hook gave, other than to read knowledge, which is
	// read again.
	Action(c hook.Call) (hook.Result, error)
	// Injected is what a command in the text of a directive printed, or a file said, by
	// the id of the tool.
	Injected(toolID, what string) (string, error)
	// Answer is what a person said.
	Answer(q thread.Question) thread.Answer
	// Heard are the messages that the thread read before the call of a turn, each once.
	// Steered reports whether an instruction is among them.
	Heard(turn int) []transcript.Message
	Steered(turn int) bool
}

// RecordedResult is what a model was given for a call.
type RecordedResult struct {
	Text    string
	IsError bool
	Images  []llm.Image
	// Sum and SameAs are those of [llm.Content].
	Sum, SameAs string
}

// referee says what would become of the calls of a thread that is replayed.
type referee struct{ *run }

// result is what the model is given of a call that is not made.
func (r referee) result(ctx context.Context, c llm.Block) toolResult {
	refused := r.refusal(c)
	got := r.Recorded.Call(c, refused)
	if got.IsError {
		failure := refused
		if failure == nil {
			failure = faultOf(got.Text)
		}
		_, _ = r.afterFailure(ctx, c, failure) // the hooks of today decide; the result stands
	}
	return toolResult{text: got.Text, failed: got.IsError, images: got.Images, sum: got.Sum, sameAs: got.SameAs}
}

// faultOf is a failure as the model was told it.
func faultOf(text string) *tool.Fault {
	var told struct {
		Error string    `json:"error"`
		Code  tool.Code `json:"code"`
	}
	if json.Unmarshal([]byte(text), &told) != nil || told.Error == "" {
		return tool.Faultf(tool.CodeToolFailed, "%s", text)
	}
	return tool.Faultf(told.Code, "%s", told.Error)
}

// refusal says why a call would be refused before its tool is run; nil: it would not.
// Nothing is run to find out.
func (r referee) refusal(c llm.Block) *tool.Fault {
	entry, known := r.toolset.palette.Get(c.ToolName)
	if !known {
		return action.ToolFault(c.ToolName, r.notOffered(c.ToolName))
	}
	args := argumentsOf(c)
	if err := malformed(c, args); err != nil {
		return tool.AsFault(err)
	}
	if err := r.refusedNow(entry, args); err != nil {
		return action.ToolFault(c.ToolName, err)
	}
	return nil
}

func (r referee) refusedNow(entry palette.Entry, args json.RawMessage) error {
	if entry.Kind == palette.KindPrimary { // which is no item, and changes with the program alone
		return r.refusedPrimary(entry.ID, args)
	}
	if _, err := tool.Accept(entry.Definition.Schema, args); err != nil {
		return err
	}
	if entry.Kind == palette.KindArtifact || entry.ID == action.OrchestratorID || entry.ID == action.ThreadDirectiveID {
		return nil
	}
	return r.allow(palette.Required(entry.ID))
}

// refusedPrimary asks for the capability of a call, as the action does, and then for what
// it executes.
func (r referee) refusedPrimary(id string, args json.RawMessage) error {
	if err := action.Permits(action.Caller{InThread: true, Allow: r.allow}, r.Resolver, id, args); err != nil {
		return err
	}
	var what struct {
		Kind item.Kind `json:"item_type"`
		ID   string    `json:"item_id"`
	}
	unread := json.Unmarshal(args, &what) // the action itself says what is wrong
	if unread != nil || id != executeID || what.ID == "" || threadTool(what.ID) {
		return nil //nolint:nilerr // see above
	}
	var err error
	switch what.Kind {
	case item.Tool:
		_, err = r.Executor.Find(r.Resolver, what.ID)
	case item.Directive, item.Knowledge:
		_, err = r.Resolver.Find(what.Kind, what.ID)
	}
	return err
}

// threadTool reports whether an id is that of a tool that acts on threads, which is in
// no registry.
func threadTool(id string) bool {
	return id == action.ThreadSummaryID || slices.Contains(action.ThreadItemIDs(), id)
}
