package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Plan is the answer to a dry run of a fork.
type Plan struct {
	Success bool     `json:"success"`
	Plan    PlanBody `json:"plan"`
}

// PlanBody says what a start would do.
type PlanBody struct {
	Directive    string         `json:"directive"`
	Space        string         `json:"space"`
	Path         string         `json:"path"`
	Shadows      []string       `json:"shadows,omitempty"`
	Inputs       map[string]any `json:"inputs"`
	Model        string         `json:"model"`
	Limits       thread.Limits  `json:"limits"`
	Capabilities []string       `json:"capabilities" jsonschema:"declared or inherited, as far as every ancestor allows them"`
	Dropped      []string       `json:"capabilities_dropped,omitempty" jsonschema:"declared, but without effect"`
	// DroppedWhy has every reason of each: who asks one ancestor for more need not find
	// out about the next by trying.
	DroppedWhy map[string]string `json:"capabilities_dropped_why,omitempty" jsonschema:"why, by capability"`
	Tools      []string          `json:"tools" jsonschema:"ids of the tools it may execute"`
	WorstCost  thread.Micros     `json:"worst_case_cost" jsonschema:"US dollars; the spend limit, which no call may pass"`
	action.Inheritance
	Warnings []string `json:"warnings,omitempty"`
}

// plan is a start that has been checked and has changed nothing yet.
type plan struct {
	caller   action.Caller
	request  action.StartRequest
	found    *resolve.Found
	doc      *item.DirectiveDoc
	composed *composition
	inputs   map[string]any    // with placeholders of secrets
	secrets  map[string]string // values of the secret inputs, in memory only
	// permissions are the directive's own, or those it inherits.
	permissions item.Permissions
	parent      *thread.Meta // nil for a root
	grant       permission.Grant
	limits      thread.Limits
	choice      provider.Choice
	dropped     []string
	droppedWhy  map[string]string // by capability
	warnings    []string
	risks       []risk // warned of; a person may accept them
	// spendAsked is true when directive or overrides name a spend limit; one that
	// only comes from the defaults shrinks to what the parent has left.
	spendAsked bool
}

// late reports whether the parent has ended, and its last hooks start the thread.
func (p *plan) late() bool { return p.caller.Hook != nil && p.caller.Hook.Ended }

// firing are the ids of the hooks that the thread must not fire again.
func (p *plan) firing() []string {
	var ids []string
	if p.parent != nil {
		ids = p.parent.Firing
	}
	if p.caller.Hook != nil { // whose list has those of the thread it belongs to
		ids = p.caller.Hook.Firing
	}
	return ids
}

// Plan says what a start would do, and changes nothing.
func (c *Controller) Plan(ctx context.Context, caller action.Caller, req action.StartRequest) (Plan, error) {
	p, err := c.newCall().plan(ctx, caller, req)
	if err != nil {
		return Plan{}, err
	}
	tools, err := c.toolsOf(p)
	if err != nil {
		return Plan{}, threads.Fault(err)
	}
	body := PlanBody{
		Directive: p.found.ID, Space: string(p.found.Space), Path: p.found.Path,
		Inputs: inputs.Shown(p.doc, p.inputs), Model: p.choice.Ref(), Limits: p.limits,
		Capabilities: p.grant.Effective(), Dropped: p.dropped, DroppedWhy: p.droppedWhy, Tools: tools, WorstCost: p.limits.Spend, Warnings: p.warnings,
		Inheritance: p.composed.inheritance(),
	}
	for _, s := range p.found.Shadows {
		body.Shadows = append(body.Shadows, s.Path)
	}
	return Plan{Success: true, Plan: body}, nil
}

// toolsOf lists the tools that the thread may execute, by id.
func (c *Controller) toolsOf(p *plan) ([]string, error) {
	entries, err := c.Resolver.All(item.Tool)
	if err != nil {
		return nil, err
	}
	tools := []string{}
	for _, e := range entries {
		if p.grant.Allows(permission.Required(permission.Execute, item.Tool, e.ID)) && !slices.Contains(tools, e.ID) {
			tools = append(tools, e.ID)
		}
	}
	return tools, nil
}

// plan checks everything a caller can have got wrong, before anything is
// registered: directive, inputs, what it extends, its context, parent,
// capabilities and their risk, limits, model.
func (c *call) plan(ctx context.Context, caller action.Caller, req action.StartRequest) (*plan, error) {
	if caller.InThread { // whatever a model says
		req.Parent = caller.Env.ThreadID
	}
	leftOut := config.Strings(c.Config.LeftOut())
	p := &plan{caller: caller, request: req, warnings: leftOut}
	steps := []func(context.Context) error{
		func(context.Context) error { return c.loadDirective(p) },
		func(context.Context) error { return c.inherit(p) },
		func(ctx context.Context) error { return c.loadParent(ctx, p) },
		func(context.Context) error { return c.judgeRisk(p) },
		func(context.Context) error { return c.resolveLimits(p) },
		func(context.Context) error { return c.readCoordination(p) },
		func(ctx context.Context) error { return c.chooseModel(ctx, p) },
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, withLeftOut(threads.Fault(err), leftOut)
		}
	}
	return p, nil
}

// withLeftOut adds to a refusal what of the project's settings does not count: it
// may be the cause.
func withLeftOut(f *tool.Fault, leftOut []string) *tool.Fault {
	if len(leftOut) == 0 {
		return f
	}
	return f.With("settings_left_out", leftOut)
}

func (c *call) loadDirective(p *plan) error {
	if err := c.findDirective(p); err != nil {
		return err
	}
	given, err := handOver(p.doc, p.request.Inputs, p.caller.Secrets)
	if err != nil {
		return err
	}
	p.inputs, p.secrets, err = inputs.Validate(p.doc, given)
	return err
}

// findDirective finds the directive, which must be trusted.
func (c *call) findDirective(p *plan) error {
	found, err := c.Resolver.Find(item.Directive, p.request.Directive)
	if err != nil {
		return err
	}
	decision, err := c.Trust.Check(trust.SubjectOf(found))
	if err != nil {
		return err
	}
	if decision.Warning != "" {
		p.warnings = append(p.warnings, decision.Warning)
	}
	p.found = found
	if p.doc, err = found.Directive(); err != nil {
		return err
	}
	unknown, err := p.doc.CheckNames(found.ID, found.Path)
	p.warnings = append(p.warnings, unknown...)
	return err
}

// inherit composes the directive with what it extends.
func (c *call) inherit(p *plan) error {
	composed, err := c.composition(p.found, p.doc, p.inputs, p.request.Model)
	if err != nil {
		return err
	}
	p.composed, p.permissions = composed, composed.Permissions
	p.warnings = append(p.warnings, composed.warnings...)
	for _, link := range composed.Chain[1:] { // that of the directive itself has been read before
		// Of what it extends, context, hooks and permissions count.
		unknown, err := link.Doc.CheckNames(link.ID, link.Path, item.PartPermissions, item.PartExtends)
		if err != nil {
			return err
		}
		p.warnings = append(p.warnings, unknown...)
	}
	return nil
}

// loadParent reads the parent's thread.json, which must be readable and, when
// there is a key, correctly signed; its capabilities and limits bound the child.
func (c *Controller) loadParent(ctx context.Context, p *plan) error {
	if p.request.Parent == "" {
		p.request.Parent = c.Parent
	}
	if p.request.Parent == "" {
		p.grant = permission.ForChild(p.permissions, nil)
		return nil
	}
	rec, err := c.parentNow(ctx, p)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrParentGone, p.request.Parent, err)
	}
	p.request.Parent = rec.ThreadID
	if rec.Status != thread.Running && (!p.late() || !rec.Status.Terminal()) {
		return fmt.Errorf("%w: %s is %s", store.ErrParentGone, rec.ThreadID, rec.Status)
	}
	if p.parent, err = c.parentMeta(rec.ThreadID); err != nil {
		return err
	}
	above := permission.Grant{Own: p.parent.Own(), Ceiling: p.parent.Ceiling}
	if hook := p.caller.Hook; hook == nil || !hook.Exempt {
		if err := mayStart(rec.ThreadID, above, p.found); err != nil {
			return err
		}
	}
	p.grant = permission.ForChild(p.permissions, &above)
	p.dropped = p.grant.Dropped()
	p.droppedWhy = whyDropped(p.grant, p.dropped)
	for _, capability := range p.dropped {
		p.warnings = append(p.warnings, "without effect: "+item.Shown(capability)+", "+p.droppedWhy[capability])
	}
	return nil
}

// whyDropped says of each capability which ancestors allow nothing of it.
func whyDropped(grant permission.Grant, dropped []string) map[string]string {
	why := make(map[string]string, len(dropped))
	for _, capability := range dropped {
		var who []string
		for _, ancestor := range grant.DroppedBy(capability) {
			if ancestor == 1 {
				who = append(who, "its parent")
			} else {
				who = append(who, fmt.Sprintf("its ancestor %d levels up", ancestor))
			}
		}
		verb := " allow nothing"
		if len(who) == 1 {
			verb = " allows nothing"
		}
		why[capability] = "of which " + strings.Join(who, " and ") + verb
	}
	return why
}

// parentMeta reads the thread.json of a parent.
func (c *Controller) parentMeta(id thread.ID) (*thread.Meta, error) {
	meta, err := c.Threads.OwnMeta(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrParentGone, err)
	}
	return &meta, nil
}

// parentNow is the row of the parent, or of the thread that carries it on. Last
// hooks belong to the thread that has ended, whoever carries that on.
func (c *Controller) parentNow(ctx context.Context, p *plan) (thread.Record, error) {
	if !p.late() {
		return c.Threads.Look(ctx, p.request.Parent)
	}
	return c.Threads.Examine(ctx, p.request.Parent)
}

// mayStart refuses a directive that the parent has no capability to start, also
// where the parent was named by hand or by the environment of one of its tools.
// Tools (found is nil) were checked by whoever calls them.
func mayStart(parent thread.ID, grant permission.Grant, found *resolve.Found) error {
	if found == nil {
		return nil
	}
	var denied *permission.DeniedError
	if errors.As(permission.CanSpawn(grant, found.ID), &denied) {
		return tool.Faultf(tool.CodePermissionDenied, "thread %s may not start directive %s: %w", parent, found.ID, denied).
			With("missing_capability", denied.Capability)
	}
	return nil
}

func (c *call) resolveLimits(p *plan) error {
	resilience, warnings, err := c.Config.Resilience()
	if err != nil {
		return err
	}
	p.warnings = append(p.warnings, warnings...)
	overrides, err := limit.ParseOverrides(p.request.LimitOverrides)
	if err != nil {
		return err
	}
	var above *thread.Limits
	if p.parent != nil {
		above = &p.parent.Limits
	}
	if err := p.checkOverrides(overrides, resilience); err != nil {
		return err
	}
	p.limits, err = limit.Resolve(resilience.Limits, p.doc.Limits, overrides, above)
	_, inDirective := p.doc.Limits["spend"]
	_, inOverrides := overrides["spend"]
	p.spendAsked = inDirective || inOverrides
	return err
}

// checkOverrides refuses a call that gives the thread more than it may. A hook of
// the program asks for what the settings say.
func (p *plan) checkOverrides(overrides item.LimitSet, settings config.Resilience) error {
	if p.parent == nil && p.caller.Person || p.caller.Hook != nil && p.caller.Hook.Exempt {
		return nil
	}
	base := maps.Clone(settings.Limits)
	maps.Copy(base, p.doc.Limits)
	if p.parent != nil {
		return limit.CheckOverrides(overrides, base, nil)
	}
	return limit.CheckOverrides(overrides, base, settings.MaxOverride)
}

// readCoordination refuses settings that the thread's process could not read: there
// nobody would be told at once.
func (c *call) readCoordination(p *plan) error {
	_, warnings, err := c.Config.Coordination()
	p.warnings = append(p.warnings, warnings...)
	return err
}

// wantOf is the model that a directive asks for, unless the caller names one.
func wantOf(doc *item.DirectiveDoc, override string) provider.Want {
	m := doc.Model
	return provider.Want{Override: override, Provider: m.Provider, Tier: m.Tier, ID: m.ID, Fallback: m.Fallback}
}

func (c *call) chooseModel(ctx context.Context, p *plan) error {
	choice, err := c.Providers.Choose(ctx, wantOf(p.doc, p.request.Model))
	if err != nil {
		return err
	}
	if choice.Unpriced() {
		return tool.Faultf(tool.CodeUnpriced,
			"the price of model %s is not known, so its spend limit of %s cannot be kept", choice.Ref(), p.limits.Spend).
			WithHint("choose a model of the catalogue, or ask the person to set its price").
			WithTry("choose a model of the catalogue, or set prices (or allow_unpriced: true) in .ai/config/agent/providers/%s.yaml",
				choice.Provider)
	}
	p.choice = choice
	p.warnings = append(p.warnings, choice.Warnings...)
	return nil
}
