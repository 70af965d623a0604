package loop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// keepBytes is the longest tool result that is given to the model whole; a
// longer one is kept as an artifact of which the model sees head and tail.
const keepBytes = 24_000

// dispatch runs a call and returns the text for the model. The panic of a tool
// is that call's failure.
func (r *run) dispatch(ctx context.Context, call llm.Block) (text string, failed bool) {
	result, err := r.invoke(ctx, call)
	if err != nil {
		f := action.Fault(err)
		r.Log.Debug().Str("tool", call.ToolName).Str("code", string(f.Code)).Msg(f.Message)
		return encode(f.Body()), true
	}
	return encode(result), false
}

func (r *run) invoke(ctx context.Context, call llm.Block) (any, error) {
	entry, known := r.offer.palette.Get(call.ToolName)
	if !known {
		return nil, tool.Faultf(tool.CodeNotFound, "there is no tool %q; there are %s",
			call.ToolName, strings.Join(r.offered(), ", "))
	}
	args := call.Input
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if !json.Valid(args) {
		return nil, tool.Faultf(tool.CodeBadArguments, "the arguments of %s are not valid JSON: %s", call.ToolName, clip(args)).
			With("schema", entry.Definition.Schema).WithHint("call it again with a JSON object that fits the schema")
	}
	caller := r.caller(call)
	if entry.Kind == palette.KindPrimary {
		for _, t := range r.Actions.Tools(caller) {
			if t.Definition().ID == entry.ID {
				return t.Call(ctx, caller.Env, args)
			}
		}
		return nil, fmt.Errorf("bug; the palette offers %s, which is no primary action", entry.ID)
	}
	if err := caller.Allow(palette.Required(entry.ID)); err != nil {
		return nil, err
	}
	t, known := r.Tools.Get(entry.ID)
	if !known {
		return nil, fmt.Errorf("bug; the palette offers %s, which is not registered", entry.ID)
	}
	return t.Call(ctx, caller.Env, args)
}

// caller is this thread as the primary actions see it. Parent and capabilities
// of what it starts come from here, not from the model.
func (r *run) caller(call llm.Block) action.Caller {
	return action.Caller{
		Env:      tool.Env{Project: r.Project, ThreadID: r.ID, TempDir: r.folder().Artifacts()},
		InThread: true,
		Allow: func(required string) error {
			if denied := r.task.grant.Missing(required); denied != nil {
				return tool.Faultf(tool.CodePermissionDenied, "%w", denied).With("missing_capability", required)
			}
			return nil
		},
		Started: func(child thread.ID, directive string) {
			r.record(thread.EventChildThreadStarted, transcript.ChildStarted{
				ThreadID: child, Directive: directive, CallID: call.ToolCallID,
			})
		},
	}
}

func (r *run) offered() []string {
	var names []string
	for _, e := range r.offer.palette.Entries {
		names = append(names, e.Name)
	}
	return names
}

// keep bounds a result. What is left out can be read from the artifact.
func (r *run) keep(text string) string {
	if len(text) <= keepBytes {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	path, err := r.folder().WriteArtifact(hex.EncodeToString(sum[:]), []byte(text))
	where := "it could not be kept"
	if err == nil {
		if rel, relErr := filepath.Rel(r.Project, path); relErr == nil {
			where = "the whole text is in " + filepath.ToSlash(rel)
		}
	} else {
		r.Log.Warn().Err(err).Msg("keep a large result")
	}
	head, tail := text[:keepBytes*2/3], text[len(text)-keepBytes/3:]
	return fmt.Sprintf("%s\n… [%d bytes left out; %s] …\n%s",
		strings.ToValidUTF8(head, ""), len(text)-len(head)-len(tail), where, strings.ToValidUTF8(tail, ""))
}

// encode writes a result as JSON for a model, without escaping what HTML would
// need.
func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return encode(tool.Faultf(tool.CodeToolFailed, "the result cannot be shown: %w", err).Body())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip shows the beginning of bad input.
func clip(b []byte) string {
	const most = 200
	if len(b) <= most {
		return string(b)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(b[cut]) {
		cut--
	}
	return string(b[:cut]) + "…"
}

// runTool runs a tool in the background, as its own thread without a model.
func (r *run) runTool(ctx context.Context) ended {
	doing := "running the tool " + r.meta.Directive
	grant := permission.Grant{Own: r.meta.Capabilities, Ceiling: r.meta.Ceiling}
	if denied := grant.Missing(permission.Required("execute", item.Tool, r.meta.Directive)); denied != nil {
		return ended{err: tool.Faultf(tool.CodePermissionDenied, "%w", denied), doing: doing}
	}
	t, known := r.Tools.Get(r.meta.Directive)
	if !known {
		return ended{err: tool.Faultf(tool.CodeUnsupported, "tool %s is not built in", r.meta.Directive), doing: doing}
	}
	args, err := json.Marshal(r.meta.Inputs)
	if err != nil {
		return ended{err: err, doing: doing}
	}
	result, err := t.Call(ctx, tool.Env{Project: r.Project, ThreadID: r.ID, TempDir: r.folder().Artifacts()}, args)
	if err != nil {
		return ended{err: action.Fault(err), doing: doing}
	}
	text := encode(result)
	if len(text) > maxDataBytes {
		return ended{result: r.keep(text)}
	}
	return ended{data: json.RawMessage(text)}
}

// maxDataBytes is the longest result of a tool run that is stored in its row.
const maxDataBytes = 64 << 10
