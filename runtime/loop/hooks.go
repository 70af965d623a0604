package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// hooks are those of a thread, and what has come of them.
type hooks struct {
	engine *hook.Engine // nil: they are not loaded, and none fires
	ended  atomic.Bool  // the thread has; its last hooks run
	asking sync.Mutex   // held while a person is asked about a tool call
	halt   func(error)  // ends the turn whose tool calls run

	mu       sync.Mutex
	warnings []string              // for the outcome, each once
	late     []transcript.Addition // what has happened after the end
}

// loadHooks merges the hooks of the settings with those of the directive and what
// it extends. The spawner has found them valid, and told what there is to warn of.
func (r *run) loadHooks() error {
	set, _, err := r.Settings.Hooks()
	if err != nil {
		return err
	}
	set, err = set.WithDirectives(r.task.composed.Hooks...)
	if err != nil {
		return err
	}
	r.hooks.engine = &hook.Engine{
		Hooks: set.Suppress(r.task.composed.Suppressed...), Runner: hookRunner{r}, Firing: r.meta.Firing,
		Wrap: prompt.Wrap, Record: r.hookFired, Now: r.Now, CommandLine: r.commandLine,
	}
	if r.recovery.hooks == nil {
		r.recovery.hooks = r.ruleOnFailure
	}
	return nil
}

// commandLine is the parameter of what an action executes that is a command line.
func (r *run) commandLine(a item.Action) string {
	if a.Primary != "execute" {
		return ""
	}
	t, err := r.Executor.Find(r.Resolver, a.ItemID)
	if err != nil {
		return "" // the call will say why
	}
	return t.Definition.CommandLine
}

// hookFired puts a hook that is through on record.
func (r *run) hookFired(f transcript.HookFired) {
	f.Error, f.Spend = r.Secrets.Mask(f.Error), r.purse.record()
	r.put(thread.EventHookFired, f)
	log := r.Log.Info()
	if f.Error != "" {
		log = r.Log.Warn().Str("error", f.Error)
		r.warn(fmt.Sprintf("hook %q (%s) failed at %s: %s", item.Shown(f.HookID), f.Source, f.Event, f.Error))
	}
	for _, w := range f.Warnings {
		r.warn(fmt.Sprintf("hook %q (%s): %s", item.Shown(f.HookID), f.Source, w))
	}
	log.Str("hook", f.HookID).Str("event", f.Event).Strs("warnings", f.Warnings).Int64("ms", f.DurationMS).Msg("hook fired")
	r.Crashpoints.At(CrashHook)
}

// put puts an event on record, which after the end of the thread waits for its
// last hooks.
func (r *run) put(t thread.EventType, payload any) {
	if !r.hooks.ended.Load() {
		r.record(t, payload)
		return
	}
	r.hooks.mu.Lock()
	defer r.hooks.mu.Unlock()
	r.hooks.late = append(r.hooks.late, transcript.Addition{Type: t, Payload: payload})
}

// maxHookWarnings bounds what hooks can add to the outcome of a thread.
const maxHookWarnings = 20

// warn adds a warning to the outcome.
func (r *run) warn(text string) {
	r.hooks.mu.Lock()
	defer r.hooks.mu.Unlock()
	if len(r.hooks.warnings) < maxHookWarnings && !slices.Contains(r.hooks.warnings, text) {
		r.hooks.warnings = append(r.hooks.warnings, text)
	}
}

// hookWarnings are the warnings so far.
func (r *run) hookWarnings() []string {
	r.hooks.mu.Lock()
	defer r.hooks.mu.Unlock()
	return slices.Clone(r.hooks.warnings)
}

// control fires a control event.
func (r *run) control(ctx context.Context, event hook.Event, data map[string]any) (hook.Decision, error) {
	if !r.hooks.hear(event) {
		return hook.Decision{}, context.Cause(ctx)
	}
	data, err := r.about(data)
	if err != nil {
		return hook.Decision{}, err
	}
	d, err := r.hooks.engine.Control(ctx, event, data)
	if d.Given() {
		r.Log.Info().Str("hook", d.HookID).Str("event", string(event)).Str("decision", string(d.Verdict)).Msg("hook decided")
	}
	return d, mendable(err)
}

// notify fires a notify event.
func (r *run) notify(ctx context.Context, event hook.Event, data map[string]any) error {
	if !r.hooks.hear(event) {
		return context.Cause(ctx)
	}
	data, err := r.about(data)
	if err != nil {
		return err
	}
	return mendable(r.hooks.engine.Notify(ctx, event, data))
}

// hear reports whether an event has to be told to hooks.
func (h *hooks) hear(event hook.Event) bool { return h.engine != nil && h.engine.Hooks.Hears(event) }

// directiveText is the name of what the directive is about in the data of events.
const directiveText = "directive_text"

// about adds to the data of an event what every event after the start tells of the
// thread, in the types that conditions and templates know.
func (r *run) about(data map[string]any) (map[string]any, error) {
	all := map[string]any{
		"thread_id": r.ID, "directive": r.meta.Directive, "project_path": r.place.dir(r.Project), "inputs": r.meta.Inputs,
		"model": r.meta.Model, "limits": r.meta.Limits, "cost": r.cost, directiveText: r.task.text,
	}
	maps.Copy(all, data)
	plain, err := expr.Plain(all)
	if err != nil {
		return nil, err
	}
	all, _ = plain.(map[string]any) // of a map it makes a map
	return all, nil
}

// mendable adds to the refusal of an item, which ends the thread, whose business it
// is. Models read it too, so it names no command.
func mendable(err error) error {
	if _, ok := errors.AsType[*trust.RefusedError](err); ok {
		return fmt.Errorf("%w; a person has to look at it", err)
	}
	return err
}

// startHooks fires the events before the first turn, and returns what they add to
// the first message. Data are the facts of the thread.
func (r *run) startHooks(ctx context.Context, data map[string]any) (prompt.Blocks, []transcript.ContextInjected, error) {
	var all prompt.Blocks
	var injected []transcript.ContextInjected
	event, data := r.startEvent(data)
	for _, e := range []hook.Event{hook.EventBuildSystemPrompt, event} {
		if r.hooks.engine == nil {
			break
		}
		blocks, err := r.hooks.engine.Context(ctx, e, data)
		if err != nil {
			return all, nil, mendable(err)
		}
		for _, b := range blocks {
			position := b.Position
			if e == hook.EventBuildSystemPrompt {
				position = prompt.System
			}
			all.Add(position, b.Text)
			injected = append(injected, transcript.ContextInjected{
				ItemID: b.ItemID, Position: position, HookID: b.HookID, Bytes: len(b.Text), Text: b.Given,
			})
		}
	}
	return all, injected, nil
}

// startEvent is the event with which the thread starts, and its data.
func (r *run) startEvent(facts map[string]any) (hook.Event, map[string]any) {
	before := r.meta.ContinuationOf
	if from := r.meta.ForkedFrom; from != nil {
		before = from.ThreadID
	}
	if before == "" {
		return hook.EventThreadStarted, facts
	}
	data := maps.Clone(facts)
	data[handoff.InputPreviousThread] = string(before)
	if c := r.meta.Continuation; c != nil && c.SummaryID != "" {
		data[handoff.InputPreviousSummary] = c.SummaryID
	}
	return hook.EventThreadContinued, data
}

// afterComplete fires the last hooks of a thread that has ended. They
// change nothing about how it has ended.
func (r *run) afterComplete(ctx context.Context, status thread.State) {
	defer r.Crashpoints.At(CrashAfter)
	data := map[string]any{"status": status}
	if !r.listens(hook.EventAfterComplete, data) {
		return
	}
	if r.SlotFree != nil { // others need not wait for the hooks
		r.SlotFree(ctx)
	}
	r.hooks.ended.Store(true)
	if err := r.notify(ctx, hook.EventAfterComplete, data); err != nil {
		r.Log.Warn().Err(err).Msg("the last hooks did not all run")
	}
	r.hooks.mu.Lock()
	late := r.hooks.late
	r.hooks.mu.Unlock()
	if err := r.Transcript.Add(late...); err != nil {
		r.Log.Warn().Err(err).Msg("put the last hooks on record")
	}
}

// listens reports whether an event fires any hook.
func (r *run) listens(event hook.Event, data map[string]any) bool {
	if r.hooks.engine == nil {
		return false
	}
	data, err := r.about(data)
	return err == nil && slices.ContainsFunc(r.hooks.engine.Hooks.Explain(event, data, r.meta.Firing...),
		func(e hook.Explanation) bool { return e.Order > 0 })
}
