// Package plan is everything that can be refused before anything is written: a start
// is checked, and becomes a [Plan].
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Planner checks what is to be started.
type Planner struct {
	Project  string // absolute path of the project
	Threads  *threads.Threads
	Resolver *resolve.Resolver
	Settings *settings.Source
	Env      map[string]string // values of the {env:…} placeholders
	// Palette is what the model of a thread is offered, see [opening.Toolbox]; nil:
	// nobody asks what a first request costs.
	Palette func(opening.Wanted) (palette.Palette, error)
}

// Call is one call of a planner, with the settings of that.
type Call struct {
	*Planner
	*settings.Call
}

// In is the planner with the settings of a call.
func (c *Planner) In(now *settings.Call) *Call { return &Call{c, now} }

// Plan is a start that has been checked and has changed nothing yet.
type Plan struct {
	Caller   action.Caller
	Request  action.StartRequest
	Found    *resolve.Found
	Doc      *item.DirectiveDoc
	composed *composition
	Inputs   map[string]any    // with placeholders of secrets
	Secrets  map[string]string // values of the secret inputs, in memory only
	// Permissions are the directive's own, or those it inherits.
	Permissions item.Permissions
	Parent      *thread.Meta // nil for a root
	Grant       permission.Grant
	Limits      thread.Limits
	Choice      provider.Choice
	Dropped     []string
	DroppedWhy  map[string]string // by capability
	Warnings    []string
	risks       []risk // warned of; a person may accept them
	entry       bool   // of a set, which starts nothing else
	elsewhere   bool   // it is queued for workers, who have the keys
	snapshot    snapshot.Hash
	// SpendAsked is true when directive or overrides name a spend limit; one that
	// only comes from the defaults shrinks to what the parent has left.
	SpendAsked bool
}

// Late reports whether the parent has ended, and its last hooks start the thread.
func (p *Plan) Late() bool { return p.Caller.Hook != nil && p.Caller.Hook.Ended }

// Hashes are of the directive and of all that it extends, nearest first.
func (p *Plan) Hashes() []string {
	hashes := []string{p.Found.Hash}
	for _, link := range p.composed.chain() {
		hashes = append(hashes, link.Directive+" "+link.Hash)
	}
	return hashes
}

// Firing are the ids of the hooks that the thread must not fire again.
func (p *Plan) Firing() []string {
	var ids []string
	if p.Parent != nil {
		ids = p.Parent.Firing
	}
	if p.Caller.Hook != nil { // whose list has those of the thread it belongs to
		ids = p.Caller.Hook.Firing
	}
	return ids
}

// Start checks everything a caller can have got wrong, before anything is
// registered: directive, inputs, what it extends, its context, parent,
// capabilities and their risk, limits, model.
func (c *Call) Start(ctx context.Context, caller action.Caller, req action.StartRequest) (*Plan, error) {
	if caller.InThread { // whatever a model says
		req.Parent = caller.Env.ThreadID
	}
	return c.check(ctx, &Plan{Caller: caller, Request: req})
}

// Entry is Start for an entry of a set, which is its parent.
func (c *Call) Entry(ctx context.Context, caller action.Caller, req action.StartRequest) (*Plan, error) {
	return c.check(ctx, &Plan{Caller: caller, Request: req, entry: true})
}

func (c *Call) check(ctx context.Context, p *Plan) (*Plan, error) {
	leftOut := config.Strings(c.Config.LeftOut())
	p.Warnings = leftOut
	c, err := c.WorkingBy(ctx, cmp.Or(p.Request.Parent, c.Threads.Parent))
	if err != nil {
		return nil, withLeftOut(threads.Fault(err), leftOut)
	}
	steps := []func(context.Context) error{
		func(context.Context) error { return c.loadDirective(p) },
		func(context.Context) error { return c.Inherit(p, cmp.Or(p.Request.Parent, c.Threads.Parent)) },
		func(ctx context.Context) error { return c.loadParent(ctx, p) },
		func(context.Context) error { return c.JudgeRisk(p) },
		func(context.Context) error { return c.ResolveLimits(p) },
		func(context.Context) error { return c.readCoordination(p) },
		func(ctx context.Context) error { return c.checkWorkspace(ctx, p) },
		func(ctx context.Context) error { return c.ChooseModel(ctx, p) },
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, withLeftOut(threads.Fault(err), leftOut)
		}
	}
	c.TellOnce(p)
	return p, nil
}

// TellOnce leaves what is wrong with the settings to the root of a tree: a model pays for each
// child whose answer repeats it.
func (c *Call) TellOnce(p *Plan) {
	if p.Parent == nil || len(p.Warnings) == 0 {
		return
	}
	told := c.Config.Notices()
	p.Warnings = slices.DeleteFunc(slices.Clone(p.Warnings), func(w string) bool { return slices.Contains(told, w) })
	p.risks = nil // their places are others now; nobody is asked about what a thread starts
}

// withLeftOut adds to a refusal what of the project's settings does not count: it
// may be the cause.
func withLeftOut(f *tool.Fault, leftOut []string) *tool.Fault {
	if len(leftOut) == 0 {
		return f
	}
	return f.With("settings_left_out", leftOut)
}

func (c *Call) loadDirective(p *Plan) error {
	if err := c.FindDirective(p); err != nil {
		return err
	}
	given, err := handOver(p.Doc, p.Request.Inputs, p.Caller.Secrets)
	if err != nil {
		return err
	}
	p.Inputs, p.Secrets, err = inputs.Validate(p.Doc, given)
	p.warnOfRetry()
	return err
}

// FindDirective finds the directive, which must be trusted.
func (c *Call) FindDirective(p *Plan) error {
	found, err := c.Resolver.Find(item.Directive, p.Request.Directive)
	if err != nil {
		return err
	}
	decision, err := c.Trust.Check(trust.SubjectOf(found))
	if err != nil {
		return err
	}
	if decision.Warning != "" {
		p.Warnings = append(p.Warnings, decision.Warning)
	}
	p.Found = found
	if p.Doc, err = found.Directive(); err != nil {
		return err
	}
	unknown, err := p.Doc.CheckNames(found.ID, found.Path)
	p.Warnings = append(p.Warnings, unknown...)
	return err
}

// Inherit composes the directive with what it extends, for a thread that is below of, or
// goes on from it; of is empty for none.
func (c *Call) Inherit(p *Plan, of thread.ID) error {
	composed, err := c.composition(of, p.Found, p.Doc, p.Inputs, p.Request.Model)
	if err != nil {
		return err
	}
	p.composed, p.Permissions = composed, composed.Permissions
	p.Warnings = append(p.Warnings, composed.warnings...)
	for _, link := range composed.Chain[1:] { // that of the directive itself has been read before
		// Of what it extends, context, hooks and permissions count.
		unknown, err := link.Doc.CheckNames(link.ID, link.Path, item.PartPermissions, item.PartExtends)
		if err != nil {
			return err
		}
		p.Warnings = append(p.Warnings, unknown...)
	}
	return nil
}

// loadParent reads the parent's thread.json, which must be readable and, when
// there is a key, correctly signed; its capabilities and limits bound the child.
func (c *Planner) loadParent(ctx context.Context, p *Plan) error {
	if p.Request.Parent == "" {
		p.Request.Parent = c.Threads.Parent
	}
	if p.Request.Parent == "" {
		p.Grant = permission.ForChild(p.Permissions, nil)
		return nil
	}
	rec, err := c.parentNow(ctx, p)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrParentGone, p.Request.Parent, err)
	}
	p.Request.Parent = rec.ThreadID
	if rec.Status != thread.Running && (!p.Late() || !rec.Status.Terminal()) {
		return fmt.Errorf("%w: %s is %s", store.ErrParentGone, rec.ThreadID, rec.Status)
	}
	if (rec.Kind == thread.KindSet) != p.entry {
		return tool.Faultf(tool.CodeBadArguments, "thread %s is a set of map_threads, which starts its items alone", rec.ThreadID).
			WithHint("leave the parent out, or name another thread")
	}
	if p.Parent, err = c.ParentMeta(rec.ThreadID); err != nil {
		return err
	}
	if p.entry && p.Parent.ParentID == "" {
		p.Grant = permission.ForChild(p.Permissions, nil)
		return nil
	}
	above := permission.Grant{Own: p.Parent.Own(), Ceiling: p.Parent.Ceiling}
	if hook := p.Caller.Hook; hook == nil || !hook.Exempt {
		if err := MayStart(rec.ThreadID, above, p.Found); err != nil {
			return err
		}
	}
	p.Grant = permission.ForChild(p.Permissions, &above)
	p.Dropped = p.Grant.Dropped()
	p.DroppedWhy = WhyDropped(p.Grant, p.Dropped)
	for _, capability := range p.Dropped {
		p.Warnings = append(p.Warnings, "without effect: "+item.Shown(capability)+", "+p.DroppedWhy[capability])
	}
	return nil
}

// WhyDropped says of each capability which ancestors allow nothing of it.
func WhyDropped(grant permission.Grant, dropped []string) map[string]string {
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

// ParentMeta reads the thread.json of a parent.
func (c *Planner) ParentMeta(id thread.ID) (*thread.Meta, error) {
	meta, err := c.Threads.OwnMeta(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrParentGone, err)
	}
	return &meta, nil
}

// parentNow is the row of the parent, or of its successor. Last hooks belong to
// the thread that has ended, even when it has a successor.
func (c *Planner) parentNow(ctx context.Context, p *Plan) (thread.Record, error) {
	if !p.Late() {
		return c.Threads.Look(ctx, p.Request.Parent)
	}
	return c.Threads.Examine(ctx, p.Request.Parent)
}

// MayStart refuses a directive that the parent has no capability to start, also
// where the parent was named by hand or by the environment of one of its tools.
// Tools (found is nil) were checked by whoever calls them.
func MayStart(parent thread.ID, grant permission.Grant, found *resolve.Found) error {
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

// ResolveLimits decides how much the thread may use.
func (c *Call) ResolveLimits(p *Plan) error {
	resilience, warnings, err := c.Config.Resilience()
	if err != nil {
		return err
	}
	p.Warnings = append(p.Warnings, warnings...)
	overrides, err := limit.ParseOverrides(p.Request.Limits)
	if err != nil {
		return err
	}
	var above *thread.Limits
	if p.Parent != nil {
		above = &p.Parent.Limits
	}
	if err := p.checkOverrides(overrides, resilience); err != nil {
		return err
	}
	p.Limits, err = limit.Resolve(resilience.Limits, p.Doc.Limits, overrides, above)
	_, inDirective := p.Doc.Limits["spend"]
	_, inOverrides := overrides["spend"]
	p.SpendAsked = inDirective || inOverrides
	return err
}

// checkOverrides refuses a call that gives the thread more than it may. A hook of
// the program asks for what the settings say.
func (p *Plan) checkOverrides(overrides item.LimitSet, settings config.Resilience) error {
	if p.Parent == nil && p.Caller.Person || p.Caller.Hook != nil && p.Caller.Hook.Exempt {
		return nil
	}
	base := maps.Clone(settings.Limits)
	maps.Copy(base, p.Doc.Limits)
	if p.Parent != nil {
		return limit.CheckOverrides(overrides, base, nil)
	}
	return limit.CheckOverrides(overrides, base, settings.MaxOverride)
}

// readCoordination refuses settings that the thread's process could not read: there
// nobody would be told at once.
func (c *Call) readCoordination(p *Plan) error {
	_, warnings, err := c.Config.Coordination()
	p.Warnings = append(p.Warnings, warnings...)
	return err
}

// wantOf is the model that a directive asks for, unless the caller names one.
func wantOf(doc *item.DirectiveDoc, override string) provider.Want {
	m := doc.Model
	return provider.Want{Override: override, Provider: m.Provider, Tier: m.Tier, ID: m.ID, Fallback: m.Fallback}
}

// ChooseModel chooses the model of the thread, whose price must be known.
func (c *Call) ChooseModel(ctx context.Context, p *Plan) error {
	want := wantOf(p.Doc, p.Request.Model)
	// The entries of a set have the model that the set was opened with: that its provider is
	// away for a moment sends none of them to another vendor.
	if p.Parent != nil && (p.entry || p.Doc.Model.Inherit && want.Override == "") {
		want.Override = p.Parent.Model
	}
	providers := c.Providers
	if able, served := c.Threads.Providers(ctx); served && len(p.Secrets) == 0 {
		providers, p.elsewhere = providers.Elsewhere(able), true
	}
	choice, err := providers.Choose(ctx, want)
	if _, none := errors.AsType[*provider.NoProviderError](err); none && c.Threads.Fleet != nil && len(p.Secrets) == 0 {
		return tool.Faultf(tool.CodeNoProvider, "%w; or start a worker where it can be used: rye-mcp worker --project DIR", err)
	}
	if err != nil {
		return err
	}
	if choice.Unpriced() {
		return tool.Faultf(tool.CodeUnpriced,
			"the price of model %s is not known, so its spend limit of %s cannot be kept", choice.Ref(), p.Limits.Spend).
			WithHint("choose a model of the catalogue, or ask the person to set its price").
			WithTry("choose a model of the catalogue, or set prices (or allow_unpriced: true) in .ai/config/agent/providers/%s.yaml",
				choice.Provider)
	}
	p.Choice = choice
	p.Warnings = append(p.Warnings, choice.Warnings...)
	if old := c.Providers.StaleWarning(choice); old != "" {
		p.Warnings = append(p.Warnings, old)
	}
	return nil
}

// KeepModel keeps the model that was asked for, for a thread that nobody runs: it needs no
// key, and whoever has it run chooses again.
func (c *Call) KeepModel(ctx context.Context, p *Plan) error {
	choice, known, err := c.Providers.Known(p.Request.Model)
	if err != nil {
		return err
	}
	if !known {
		return c.ChooseModel(ctx, p)
	}
	p.Choice = choice
	return nil
}

// HaveKey asks for the key of the thread's provider where a command gives it: its
// process could tell nobody that it does not. The launch is given what was found. The keys
// of workers are their own.
func (c *Call) HaveKey(ctx context.Context, p *Plan) error {
	if p.elsewhere {
		return nil
	}
	_, err := c.Providers.Keys(ctx, p.Choice.Ref())
	if err != nil {
		return threads.Fault(err)
	}
	return nil
}

// Meta is thread.json as the spawner writes it; the thread's process reads
// everything it needs from it.
func (p *Plan) Meta(rec thread.Record) thread.Meta {
	m := thread.Meta{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: p.Found.ID, DirectivePath: p.Found.Path,
		DirectiveHash: p.Found.Hash, Space: string(p.Found.Space), ParentID: rec.ParentID,
		Status: rec.Status, CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt, Model: rec.Model,
		Inputs: p.Inputs, Limits: p.Limits, Capabilities: p.Grant.Effective(), Ceiling: p.Grant.Ceiling,
		ChainRootID: rec.ThreadID, Warnings: p.Warnings, TraceID: p.Caller.Env.TraceID, Chain: p.composed.chain(), Route: p.composed.route,
		Firing: p.Firing(), Workspace: p.Workspace(rec.ThreadID), Snapshot: p.itemsOf(),
	}
	m.Retry = p.retries()
	if m.Capabilities == nil {
		m.Capabilities = []string{}
	}
	if !slices.Equal(m.Capabilities, p.Grant.Own) {
		m.Declared = p.Grant.Own
	}
	return m
}

// ToolRun checks a run of a tool in a process of its own, which gets a parent and
// limits.
func (c *Call) ToolRun(ctx context.Context, caller action.Caller) (*Plan, error) {
	p := &Plan{Doc: &item.DirectiveDoc{}, Caller: caller}
	if caller.InThread {
		p.Request.Parent = caller.Env.ThreadID
	}
	if err := c.loadParent(ctx, p); err != nil {
		return nil, err
	}
	if p.Parent != nil {
		p.Parent.Limits.Depth++ // a tool run is no level of its own: a thread that may start no children may run tools
	}
	err := c.ResolveLimits(p)
	c.TellOnce(p)
	return p, err
}
