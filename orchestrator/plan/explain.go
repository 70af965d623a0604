package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Whether an event fires a hook.
const (
	FiresYes   = "yes"
	FiresNo    = "no"
	FiresMaybe = "maybe" // it depends on data that only the event has
)

// HookPlan says which hooks a thread of a directive would fire.
type HookPlan struct {
	Directive  string      `json:"directive"`
	Path       string      `json:"path"`
	Extends    []string    `json:"extends,omitempty"`      // what it extends, nearest first
	ExtendsBy  string      `json:"extends_hook,omitempty"` // the hook that says so, with file and line
	Suppressed []string    `json:"suppressed,omitempty"`   // ids of hooks and items
	Events     []EventPlan `json:"events"`
	Warnings   []string    `json:"warnings,omitempty"`
}

// EventPlan are the hooks that hear one event, in the order they run.
type EventPlan struct {
	Event  hook.Event     `json:"event"`
	Known  bool           `json:"known"`            // its data are known before the run
	Winner string         `json:"winner,omitempty"` // id of the hook that decides; empty: none, or it depends
	Hooks  []HookForecast `json:"hooks"`
}

// HookForecast is one hook of an event.
type HookForecast struct {
	Order     int      `json:"order,omitempty"` // from 1 among those that fire or may fire
	ID        string   `json:"id"`
	Layer     int      `json:"layer"`
	LayerName string   `json:"layer_name"`
	Path      string   `json:"path"`
	Line      int      `json:"line"`
	Condition string   `json:"condition,omitempty"`
	Fires     string   `json:"fires"`         // yes, no or maybe
	Why       string   `json:"why,omitempty"` // it does not fire, or may not
	Does      []string `json:"does"`
}

// ExplainRequest asks for the hooks of a directive.
type ExplainRequest struct {
	Directive string
	Inputs    map[string]any // those that are known
	Event     string         // empty: all
}

// ExplainHooks says which hooks the events of a thread would fire. Nothing is
// run, and nothing refused: where the trust gate would, there is a warning. No threads
// are needed.
func (c *Planner) ExplainHooks(ctx context.Context, req ExplainRequest) (*HookPlan, error) {
	events := hook.Events()
	if req.Event != "" {
		event, err := hook.ParseEvent(req.Event)
		if err != nil {
			return nil, err
		}
		events = []hook.Event{event}
	}
	e, err := newExplainer(ctx, c, req)
	if err != nil {
		return nil, threads.Fault(err)
	}
	for _, event := range events {
		e.plan.Events = append(e.plan.Events, e.event(event))
	}
	return &e.plan, nil
}

// explainer knows what is known before a thread runs.
type explainer struct {
	plan    HookPlan
	routing hook.Set       // the hooks that are asked what the directive extends
	routes  map[string]any // their data
	hooks   hook.Set
	facts   map[string]any // data of the events before the first turn
}

func newExplainer(ctx context.Context, c *Planner, req ExplainRequest) (*explainer, error) {
	found, err := c.Resolver.Find(item.Directive, req.Directive)
	if err != nil {
		return nil, err
	}
	doc, err := found.Directive()
	if err != nil {
		return nil, err
	}
	now := c.In(c.Settings.Begin())
	gate := now.Trust
	now.Trust = &trust.Gate{Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil }}
	composed, err := now.composition("", found, doc, req.Inputs, "")
	if err != nil {
		return nil, err
	}
	e := &explainer{plan: HookPlan{
		Directive: found.ID, Path: found.Path, Suppressed: composed.Suppressed,
		Warnings: slices.Concat(composed.warnings, refusals(c.Resolver, gate, composed)),
	}}
	for _, link := range composed.Chain[1:] {
		e.plan.Extends = append(e.plan.Extends, link.ID)
	}
	if composed.route != nil {
		e.plan.ExtendsBy = fmt.Sprintf("%s (%s)", composed.route.Hook, composed.route.Source)
	}
	if err := e.load(now.Config, found, doc, composed, req.Inputs); err != nil {
		return nil, err
	}
	return e, e.know(ctx, now, doc, composed, req.Inputs)
}

// load puts the hooks together the way a start and a thread do.
func (e *explainer) load(from *config.Snapshot, found *resolve.Found, doc *item.DirectiveDoc, composed *composition, given map[string]any) error {
	settings, _, err := hook.Load(from, nil)
	if err != nil {
		return hookFault(err)
	}
	own, err := settings.WithDirectives(hook.DirectiveHooks{Directive: found.ID, Path: found.Path, Hooks: doc.Hooks})
	if err != nil {
		return hookFault(err)
	}
	e.routing, e.routes = own.Suppress(doc.Context.Suppress...), routeData(found, doc, given, "")
	all, err := settings.WithDirectives(composed.Hooks...)
	if err != nil {
		return hookFault(err)
	}
	e.hooks = all.Suppress(composed.Suppressed...)
	return nil
}

// know finds out what a fresh thread that nobody started knows of itself. Its
// model is not known where no provider can be used.
func (e *explainer) know(ctx context.Context, c *Call, doc *item.DirectiveDoc, composed *composition, given map[string]any) error {
	resilience, _, err := c.Config.Resilience()
	if err != nil {
		return err
	}
	self := &prompt.ThreadFacts{}
	if self.Limits, err = limit.Resolve(resilience.Limits, doc.Limits, nil, nil); err != nil {
		return err
	}
	choice, noModel := c.Providers.Choose(ctx, wantOf(doc, ""))
	if noModel == nil {
		self.Model = choice.Ref()
	}
	e.facts, err = prompt.Facts{
		Directive: e.plan.Directive, Text: prompt.Clean(prompt.Fill(doc, given, c.Env)), Body: inputs.Body(doc, given, c.Env), ProjectPath: c.Project, Inputs: given,
		Capabilities: composed.Permissions.Capabilities, Thread: self,
	}.Data()
	if noModel != nil {
		delete(e.facts, "model")
	}
	return err
}

// refusals tell what the trust gate thinks of the directives and the knowledge.
func refusals(r *resolve.Resolver, gate *trust.Gate, composed *composition) []string {
	var all []string
	look := func(kind item.Kind, id string) {
		found, err := r.Find(kind, id)
		if err != nil {
			return // it has just been there
		}
		decision, err := gate.Check(trust.SubjectOf(found))
		if err != nil {
			all = append(all, err.Error())
		} else if decision.Warning != "" {
			all = append(all, decision.Warning)
		}
	}
	for _, link := range composed.Chain {
		look(item.Directive, link.ID)
	}
	for _, ref := range composed.Context {
		if item.NamesThread(ref.ID) {
			continue // the state key vouches for it
		}
		look(item.Knowledge, ref.ID)
	}
	return all
}

// known are the data of an event, as far as they are known before the run.
func (e *explainer) known(event hook.Event) (hook.Set, map[string]any) {
	if event == hook.EventResolveExtends {
		return e.routing, e.routes
	}
	data := map[string]any{}
	for _, name := range event.Data() {
		if value, ok := e.facts[name]; ok {
			data[name] = value
		}
	}
	return e.hooks, data
}

func (e *explainer) event(event hook.Event) EventPlan {
	hooks, data := e.known(event)
	out := EventPlan{Event: event, Known: len(data) == len(event.Data()), Hooks: []HookForecast{}}
	var first deciders
	order := 0
	for _, x := range hooks.Explain(event, data) {
		if !x.Hears {
			continue
		}
		f := forecast(x)
		first.judge(&f, x, open(event, x.Hook.Condition, data))
		if f.Fires != FiresNo {
			order++
			f.Order = order
		}
		if decisive(event, x.Hook) {
			first.note(f, x.Hook)
		}
		out.Hooks = append(out.Hooks, f)
	}
	if first.sure != nil && first.perhaps == nil {
		out.Winner = first.sure.ID
	}
	return out
}

// deciders are the hooks of an event that come first and keep others from it.
type deciders struct {
	sure    *hook.Hook // the first that decides, if none of those before it does
	perhaps *hook.Hook // the first before it that may
}

// judge says whether a hook fires, given the hooks before it. Open says that its
// condition depends on what only the event has.
func (d *deciders) judge(f *HookForecast, x hook.Explanation, open bool) {
	asked := x.Why == "" || x.By != nil
	if !asked && (!x.Unmet || !open) {
		return // it does not, whatever the others do
	}
	infra := x.Hook.Layer == hook.LayerInfra
	switch {
	case d.sure != nil && !infra:
		f.Fires, f.Why = FiresNo, fmt.Sprintf("hook %q (%s) comes first and decides", item.Shown(d.sure.ID), d.sure.Source())
	case open:
		f.Fires, f.Why = FiresMaybe, ""
	case d.perhaps != nil && !infra:
		f.Fires, f.Why = FiresMaybe, fmt.Sprintf("unless hook %q decides", item.Shown(d.perhaps.ID))
	default:
		f.Fires, f.Why = FiresYes, ""
	}
}

// note remembers a hook that decides when it fires.
func (d *deciders) note(f HookForecast, h *hook.Hook) {
	unless := f.Why != "" // it fires for sure unless another decides
	switch {
	case f.Fires == FiresNo || d.sure != nil:
	case f.Fires == FiresYes || unless:
		d.sure = h
	case d.perhaps == nil:
		d.perhaps = h
	}
}

// open reports whether a condition looks at data that the event has and that are
// not known yet.
func open(event hook.Event, c expr.Condition, data map[string]any) bool {
	return slices.ContainsFunc(c.Paths(), func(path string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "event."), ".")
		_, known := data[name]
		return !known && slices.Contains(event.Data(), name)
	})
}

// decisive reports whether a hook that fires can keep others from it.
func decisive(event hook.Event, h *hook.Hook) bool {
	return event.Kind() == hook.KindExtends || event.Kind() == hook.KindControl && h.Decides()
}

func forecast(x hook.Explanation) HookForecast {
	h := x.Hook
	f := HookForecast{
		ID: h.ID, Layer: int(h.Layer), LayerName: h.Layer.String(), Path: h.Path, Line: h.Line,
		Condition: h.Condition.String(), Fires: FiresYes, Why: x.Why,
	}
	if x.Why != "" {
		f.Fires = FiresNo
	}
	for _, a := range h.Actions {
		f.Does = append(f.Does, does(a))
	}
	return f
}

// does says what an action is about, in a few words.
func does(a item.Action) string {
	switch {
	case a.SetExtends != "":
		return "extends " + a.SetExtends
	case a.ItemID == hook.ControlID:
		return fmt.Sprintf("decides %v", a.Params["action"])
	case a.ItemID == "":
		return a.Primary
	default:
		return a.Primary + " " + a.ItemID
	}
}
