package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/guard"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// hookRunner executes the actions of the hooks of a thread, as calls of the
// primary actions by the thread.
type hookRunner struct{ *run }

// Run implements [hook.Runner].
func (h hookRunner) Run(ctx context.Context, c hook.Call) (hook.Result, error) {
	if h.isContext(c) && (h.Recorded == nil || !item.NamesThread(c.Action.ItemID)) {
		return h.load(item.Knowledge, c.Action.ItemID)
	}
	if h.Recorded != nil {
		return h.Recorded.Action(c)
	}
	if h.sumsUp(c.Action) {
		return h.sumUp(ctx, c)
	}
	args, err := arguments(c.Action)
	if err != nil {
		return hook.Result{}, err
	}
	var child thread.ID
	caller := h.hookCaller(c, &child)
	primary := "rye_" + c.Action.Primary
	t, known := h.Actions.Tool(caller, primary)
	if !known {
		return hook.Result{}, fmt.Errorf("bug; there is no primary action %s", c.Action.Primary)
	}
	result, err := h.await(ctx, cmp.Or(c.Action.ItemID, primary), func() (any, error) { return t.Call(ctx, caller.Env, args) })
	if err != nil {
		return hook.Result{}, err
	}
	return h.result(ctx, c, result, child)
}

// isContext reports whether an action makes knowledge part of a prompt, as the
// <context> of a directive does, and like that needs no capability.
func (h hookRunner) isContext(c hook.Call) bool {
	a := c.Action
	if c.Event.Kind() != hook.KindContext || a.ItemID == "" || len(a.Params) > 0 || a.Primary != "fetch" && a.Primary != "execute" {
		return false
	}
	if a.ItemType != "" {
		return a.ItemType == string(item.Knowledge)
	}
	found, err := h.Resolver.FindAny(a.ItemID)
	return err == nil && found.Kind == item.Knowledge
}

// sumsUp reports whether an action has a summary of the thread written. It is a tool
// of hooks alone, unless somebody has a tool of that id.
func (h hookRunner) sumsUp(a item.Action) bool {
	_, given := a.Params[inputTranscript] // for the directive of that id
	if a.ItemID != action.ThreadSummaryID || a.Primary != "execute" || a.ItemType != string(item.Tool) && (a.ItemType != "" || given) {
		return false
	}
	found, err := h.Resolver.Look(item.Tool, a.ItemID)
	return err == nil && found == nil
}

// sumUp has a summary of this thread written, which needs no capability: it is made of
// what the thread itself has said, and paid by it.
func (h hookRunner) sumUp(ctx context.Context, c hook.Call) (hook.Result, error) {
	if of, _ := c.Action.Params[inputThread].(string); of != "" && of != string(h.ID) {
		return hook.Result{}, tool.Faultf(tool.CodeUnsupported, "%s sums up the thread whose hook calls it, which is %s and not %s",
			action.ThreadSummaryID, h.ID, of).WithHint("leave %s out", inputThread)
	}
	directive := cmp.Or(h.Settings.Continuation.SummaryDirective, action.ThreadSummaryID)
	if directive == h.meta.Directive {
		return hook.Result{Text: "a summary is not summed up"}, nil
	}
	text, err := summarizer(h).runSummary(ctx, directive)
	return hook.Result{Text: text}, err
}

// arguments are those of a primary action. The params of a hook's action are the
// parameters of what it executes, and of the other actions further arguments.
func arguments(a item.Action) (json.RawMessage, error) {
	args := map[string]any{}
	switch {
	case a.Primary != "execute":
		maps.Copy(args, a.Params)
	case len(a.Params) > 0:
		args["parameters"] = a.Params
	}
	if a.ItemType != "" {
		args["item_type"] = a.ItemType
	}
	if a.ItemID != "" {
		args["item_id"] = a.ItemID
	}
	return json.Marshal(args)
}

// hookCaller is this thread as the actions of its hooks call. Child is told which
// thread the call starts.
func (r *run) hookCaller(c hook.Call, child *thread.ID) action.Caller {
	return action.Caller{
		Env: r.env(), InThread: true, Allow: r.allow,
		Hook: &action.HookCall{Exempt: c.Hook.Exempt(), Firing: c.Firing, Ended: r.hooks.ended.Load()},
		Started: func(id thread.ID, directive string) {
			*child = id
			r.put(thread.EventChildThreadStarted, transcript.ChildStarted{ThreadID: id, Directive: directive, HookID: c.Hook.ID})
			r.Crashpoints.At(CrashChild)
		},
	}
}

// result is what an action gave, as text.
func (h hookRunner) result(ctx context.Context, c hook.Call, result any, child thread.ID) (hook.Result, error) {
	switch result := result.(type) {
	case *action.FetchResult:
		return h.load(result.ItemType, result.ItemID)
	case *action.KnowledgeResult:
		return h.load(item.Knowledge, result.ItemID)
	case *action.ToolResult:
		if quoter, ok := result.Data.(tool.Quoter); ok && c.Event.Kind() == hook.KindContext {
			return hook.Result{Text: h.Secrets.Mask(quoter.ForPrompt())}, nil
		}
		return hook.Result{Text: h.bounded(result.Data)}, nil
	}
	if child == "" {
		return hook.Result{Text: h.bounded(result)}, nil
	}
	return h.outcomeOf(ctx, child)
}

// load reads an item that the thread may see. One that becomes part of a prompt must
// pass the trust gate, though the thread could read it anyway.
func (h hookRunner) load(kind item.Kind, id string) (hook.Result, error) {
	found, err := h.Resolver.Find(kind, id)
	if err != nil {
		return hook.Result{}, err
	}
	decision, err := h.Trust.Check(trust.SubjectOf(found))
	if err != nil {
		return hook.Result{}, err
	}
	if decision.Warning != "" {
		h.warn(decision.Warning)
	}
	if kind != item.Knowledge {
		return hook.Result{Text: h.bounded(sign.Hide(string(parse.StripSignature(found.Content))))}, nil
	}
	doc, err := found.Knowledge()
	if err != nil {
		return hook.Result{}, err
	}
	return hook.Result{
		Text: sign.Hide(h.Secrets.Mask(doc.Body)), Name: doc.Name,
		// The latest thread has left another text tomorrow, so this one goes on record.
		Knowledge: !item.NamesThread(id), Verbatim: item.IsThreadRecord(kind, id),
	}, nil
}

// outcomeOf is the result of a child that a hook has started.
func (h hookRunner) outcomeOf(ctx context.Context, child thread.ID) (hook.Result, error) {
	rec, err := h.lastOf(ctx, child)
	if err != nil {
		return hook.Result{}, err
	}
	if !rec.Status.Terminal() {
		return hook.Result{Text: fmt.Sprintf("thread %s was started", child)}, nil
	}
	if err := problemOf(rec); err != nil {
		return hook.Result{}, err
	}
	return hook.Result{Text: h.bounded(rec.Outcome.Result)}, nil
}

// lastOf is the row of a child, or of the last thread that continues it.
func (r *run) lastOf(ctx context.Context, child thread.ID) (thread.Record, error) {
	for seen := map[thread.ID]bool{}; ; seen[child] = true {
		rec, err := r.Store.Get(ctx, child)
		next := rec.ContinuationThreadID
		if err != nil || rec.Status != thread.Continued || next == "" || seen[next] {
			return rec, err
		}
		child = next
	}
}

// problemOf says why a thread that has ended did not complete; nil when it did.
func problemOf(rec thread.Record) error {
	switch {
	case rec.Outcome == nil:
		return fmt.Errorf("thread %s ended as %s", rec.ThreadID, rec.Status)
	case rec.Outcome.Error != nil:
		return fmt.Errorf("thread %s ended as %s: %s", rec.ThreadID, rec.Status, rec.Outcome.Error.Message)
	}
	return nil
}

// bounded is a result as text that is no longer than a result in a conversation.
func (r *run) bounded(result any) string {
	text, isText := plain(result)
	if !isText {
		return r.keptBinary(r.Secrets.MaskBytes([]byte(text)))
	}
	text = guard.Clean(r.Secrets.Mask(text))
	return guard.Shorten(text, r.Settings.Results.MaxChars, "the rest is left out")
}
