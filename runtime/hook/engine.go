package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/shellline"
)

// ErrIntegrity is wrapped by a failure of an action for which the thread must
// end, as it must when the trust gate refuses an item ([trust.RefusedError]).
var ErrIntegrity = errors.New("integrity of an item")

// Runner executes what hooks do.
type Runner interface {
	// Run executes an action. The hook's timeout ends ctx.
	Run(ctx context.Context, call Call) (Result, error)
}

// Call is one action of a hook, ready to be executed.
type Call struct {
	Hook   *Hook // whose Exempt says whether capabilities are asked for
	Event  Event
	Action item.Action // templates filled in
	// Firing are the ids of hooks that a thread which this call starts must not fire
	// again; see [Engine.Firing].
	Firing []string
}

// Result is what an action gave.
type Result struct {
	Text string // for the model, at a context event
	Name string // of the item; empty: the end of its id
	// Knowledge says that Text is the body of a knowledge item: ${…} in it is
	// filled in. Text that a tool or a thread gave is taken as it is.
	Knowledge bool
	// Verbatim says that Text, of a knowledge item, is nothing that was written to be
	// filled in.
	Verbatim bool
}

// Block is text that a hook of a context event gives.
type Block struct {
	Position string // Before or After
	Text     string
	ItemID   string // what it came from; may be empty
	HookID   string
	// Given is the text before it was put into an element, where a tool or a thread gave
	// it; empty for that of an item.
	Given string
}

// Engine fires the hooks of one thread. It is safe for concurrent use if Runner
// and Record are.
type Engine struct {
	Hooks  Set
	Runner Runner
	// Firing are the ids of the hooks that started this thread, and those above it.
	Firing []string
	// Wrap puts the text of an item into an element that names it.
	Wrap func(name, id, text string) string
	// CommandLine names the parameter of what an action executes that is a command
	// line of the shell, in which data are quoted; empty for none. It may be nil.
	CommandLine func(item.Action) string
	// Record is told of every hook that fired, when it is through.
	Record func(transcript.HookFired)
	Now    func() time.Time
}

// Context fires the hooks of a context event and returns what they give, in
// order. An error is a reason for the thread to end: an item that may not be
// used, or the cause for which ctx ended.
func (e *Engine) Context(ctx context.Context, event Event, data map[string]any) ([]Block, error) {
	var blocks []Block
	err := e.each(ctx, event, data, func(f *firing) { blocks = append(blocks, f.blocks...) }, nil)
	return blocks, err
}

// Control fires the hooks of a control event until one decides, and those of
// layer 4 in any case. Errors are as those of Context; a decision that was made
// before stands.
func (e *Engine) Control(ctx context.Context, event Event, data map[string]any) (Decision, error) {
	var decision Decision
	decided := func(h *Hook) bool { return decision.Given() && h.Layer != LayerInfra }
	err := e.each(ctx, event, data, func(f *firing) {
		if !decision.Given() {
			decision = f.decision
		}
	}, decided)
	return decision, err
}

// Notify fires the hooks of a notify event. Errors are as those of Context.
func (e *Engine) Notify(ctx context.Context, event Event, data map[string]any) error {
	return e.each(ctx, event, data, func(*firing) {}, nil)
}

// each fires the hooks of an event that skip, where there is one, does not leave
// out.
func (e *Engine) each(ctx context.Context, event Event, data map[string]any, done func(*firing), skip func(*Hook) bool) error {
	data = withEvent(event, data)
	for _, h := range e.Hooks.matching(event, data, e.Firing) {
		if skip != nil && skip(h) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := &firing{engine: e, hook: h, event: event, data: data}
		f.run(ctx)
		done(f)
		if breaksIntegrity(f.err) || f.err != nil && h.Required && event.Kind() == KindContext {
			return fmt.Errorf("hook %q (%s): %w", item.Shown(h.ID), h.Source(), f.err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func breaksIntegrity(err error) bool {
	var refused *trust.RefusedError
	return errors.As(err, &refused) || errors.Is(err, ErrIntegrity)
}

// timeoutError ends a hook that takes too long.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("took longer than its timeout of %s", e.after)
}

// firing is one hook that fires.
type firing struct {
	engine   *Engine
	hook     *Hook
	event    Event
	data     map[string]any
	decision Decision
	blocks   []Block
	results  []string // of the actions, for the record
	warnings []string
	err      error // that ended it
}

// run executes the actions and records what came of it.
func (f *firing) run(ctx context.Context) {
	began := f.engine.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, f.hook.Timeout, &timeoutError{f.hook.Timeout})
	defer cancel()
	for _, a := range f.hook.Actions {
		if f.err = f.act(ctx, a); f.err != nil {
			if ctx.Err() != nil && !breaksIntegrity(f.err) {
				f.err = context.Cause(ctx)
			}
			break
		}
	}
	fired := transcript.HookFired{
		HookID: f.hook.ID, Event: string(f.event), Layer: int(f.hook.Layer), Source: f.hook.Source(),
		Result: strings.Join(f.results, "; "), Warnings: f.warnings,
		DurationMS: f.engine.Now().Sub(began).Milliseconds(),
	}
	if f.err != nil {
		fired.Error = f.err.Error()
	}
	f.engine.Record(fired)
}

func (f *firing) act(ctx context.Context, written item.Action) error {
	a, err := f.expand(written)
	if err != nil {
		return err
	}
	if absent := f.absent(written, a); absent != "" {
		f.results = append(f.results, "left out, as there is no "+absent)
		return nil
	}
	if err := f.allowed(a); err != nil {
		return err
	}
	if a.ItemID == ControlID {
		return f.decide(a.Params)
	}
	if f.engine.Hooks.suppresses(f.hook, f.event, a.ItemID) {
		f.results = append(f.results, a.ItemID+" is suppressed")
		return nil
	}
	result, err := f.engine.Runner.Run(ctx, Call{
		Hook: f.hook, Event: f.event, Action: a,
		Firing: slices.Concat(f.engine.Firing, []string{f.hook.ID}),
	})
	if err != nil {
		return err
	}
	f.results = append(f.results, fmt.Sprintf("%s %s: %d bytes", a.Primary, a.ItemID, len(result.Text)))
	if f.event.Kind() == KindContext && result.Text != "" {
		f.blocks = append(f.blocks, f.block(a.ItemID, result))
	}
	return nil
}

// absent names what the id of knowledge is made of and is not there, where it is no id without
// that: what a thread is not given it need not read.
func (f *firing) absent(written, filled item.Action) string {
	if f.event.Kind() != KindContext || f.hook.Required || written.ItemType != string(item.Knowledge) || item.CheckID(filled.ItemID) == nil {
		return ""
	}
	_, missing := expr.ExpandText(written.ItemID, f.data)
	return strings.Join(missing, ", ")
}

// allowed checks what only the filled in action can tell.
func (f *firing) allowed(a item.Action) error {
	if a.ItemID != "" {
		if err := item.CheckID(a.ItemID); err != nil {
			return err
		}
	}
	if reason := badItem(f.hook, a); reason != "" {
		return errors.New(reason)
	}
	return nil
}

// expand fills in the templates of an action.
func (f *firing) expand(a item.Action) (item.Action, error) {
	var missing []string
	a.ItemID, missing = expr.ExpandText(a.ItemID, f.data)
	f.miss(missing)
	if a.Params == nil {
		return a, nil
	}
	written := a.Params
	params, missing := expr.ExpandAll(written, f.data)
	a.Params, _ = params.(map[string]any) // of a map it makes a map
	f.miss(missing)
	if f.engine.CommandLine == nil {
		return a, nil
	}
	name := f.engine.CommandLine(a)
	line, isText := written[name].(string)
	if !isText {
		return a, nil
	}
	var err error
	a.Params[name], err = f.commandLine(line)
	if err != nil {
		return a, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// commandLine fills in a command line. Data are words of it and never commands,
// except where the whole line is one piece of data.
func (f *firing) commandLine(written string) (string, error) {
	t := expr.ParseTemplate(written)
	if t.Whole() {
		filled, _ := expr.ExpandText(written, f.data)
		return filled, nil
	}
	var line shellline.Line
	t.Build(f.data, &line) // missing data is known already
	return line.Finish()
}

func (f *firing) miss(missing []string) {
	if len(missing) > 0 {
		f.warnings = append(f.warnings, lacking(missing))
	}
}

// decide takes down the first decision of the hook.
func (f *firing) decide(params map[string]any) error {
	d, err := decide(f.event, params)
	if err != nil {
		return err
	}
	f.results = append(f.results, string(d.Verdict))
	if !f.decision.Given() {
		d.HookID = f.hook.ID
		f.decision = d
	}
	return nil
}

// block is the text of a result the way the model gets it.
func (f *firing) block(itemID string, r Result) Block {
	text, given := r.Text, r.Text
	if r.Knowledge {
		given = ""
	}
	if r.Knowledge && !r.Verbatim {
		var missing []string
		text, missing = expr.ExpandText(text, f.data)
		f.miss(missing)
	}
	if f.hook.Wrap {
		name := r.Name
		if name == "" {
			name = itemID[strings.LastIndex(itemID, "/")+1:]
		}
		text = f.engine.Wrap(name, itemID, text)
	}
	return Block{Position: f.hook.Position, Text: text, ItemID: itemID, HookID: f.hook.ID, Given: given}
}
