package executor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Executor runs the tools of one project. It is safe for concurrent use.
type Executor struct {
	builtins   *tool.Registry
	chains     *chain.Builder // nil: built-in tools only
	primitives map[string]chain.Primitive
	idle       func(id string) bool
}

// New returns an executor with these built-in tools. Each has an id of its own.
func New(builtins ...tool.Tool) (*Executor, error) {
	registry, err := tool.NewRegistry(builtins...)
	if err != nil {
		return nil, err
	}
	return &Executor{builtins: registry}, nil
}

// WithItems returns an executor that also runs the tools of items: chains leads to
// one of the primitives, by their ids. Those that are an io.Closer are closed with it.
func (e *Executor) WithItems(chains *chain.Builder, primitives map[string]chain.Primitive) *Executor {
	return &Executor{builtins: e.builtins, chains: chains, primitives: primitives, idle: e.idle}
}

// WithIdle returns an executor of which some built-in tools do nothing at the moment, as
// what they need is switched off: models are not offered them, and a call says so.
func (e *Executor) WithIdle(idle func(id string) bool) *Executor {
	with := *e
	with.idle = idle
	return &with
}

// Idle reports whether a built-in tool does nothing at the moment.
func (e *Executor) Idle(id string) bool { return e.idle != nil && e.idle(id) }

// Close closes what the primitives keep between calls.
func (e *Executor) Close() error {
	var errs []error
	for _, p := range e.primitives {
		if c, ok := p.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Tool is a tool that can be run, once: what was verified to find it may be another
// thing at the next call.
type Tool struct {
	Definition tool.Definition
	// Chain leads from the tool to what runs it; empty for a tool that was found by
	// its id alone.
	Chain []tool.Link
	// Warnings are about items of the chain that are used although their signatures
	// are not good, and about parameters that are not checked.
	Warnings []string
	// Notes are those of Warnings about a configuration that nobody reads.
	Notes []string

	builtin tool.Tool    // nil for others
	chain   *chain.Chain // nil for built-in tools
}

// Definitions are those of the built-in tools, by id. The schemas of tools that are
// not shown to anybody are left out.
func (e *Executor) Definitions(shown func(id string) bool) []tool.Definition {
	all := e.builtins.All()
	list := make([]tool.Definition, len(all))
	for i, t := range all {
		if list[i] = tool.OutlineOf(t); shown(list[i].ID) {
			list[i] = t.Definition()
		}
	}
	return list
}

// Has reports whether there is a built-in tool of that id.
func (e *Executor) Has(id string) bool {
	_, known := e.builtins.Get(id)
	return known
}

// Named is the built-in tool of an id.
func (e *Executor) Named(id string) (*Tool, bool) {
	t, known := e.builtins.Get(id)
	if !known {
		return nil, false
	}
	return &Tool{Definition: t.Definition(), builtin: t}, true
}

// Find is the tool that an id means now: that of an item, or the built-in one where
// no space has an item of the id.
func (e *Executor) Find(r *resolve.Resolver, id string) (*Tool, error) {
	found, err := r.Look(item.Tool, id)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return e.Of(found)
	}
	if t, known := e.Named(id); known {
		return t, nil
	}
	_, err = r.Find(item.Tool, id) // says which ids look alike
	return nil, err
}

// Of is the tool of an item. The item and all that it needs to run are verified. The
// error of an item that cannot be run is a *tool.Fault, or that of who refused it.
func (e *Executor) Of(found *resolve.Found) (*Tool, error) {
	if e.chains == nil {
		return e.builtinOf(found)
	}
	c, err := e.chains.Build(found)
	if err != nil {
		return nil, err
	}
	t, err := e.ofChain(c)
	if err != nil {
		return nil, err
	}
	t.Chain, t.Warnings = c.Links(), slices.Concat(c.Warnings[min(len(c.Warnings), warningsOfTool(c)):], t.Warnings)
	return t, nil
}

// Examine refuses an item that can never be run as it is written, for whoever is about to
// sign it. Items that its chain leads to need not be signed, and things that it needs need
// not be there. Notes are those of a [Tool].
func (e *Executor) Examine(found *resolve.Found) (notes []string, err error) {
	if e.chains == nil {
		return nil, nil
	}
	var t *Tool
	c, err := e.chains.Examine(found)
	if err == nil {
		t, err = e.ofChain(c)
	}
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeInvalidItem {
		return nil, err
	}
	if t == nil {
		return nil, nil
	}
	err = tool.Validate(t.Definition.Schema, json.RawMessage(`{}`))
	if err != nil && !errors.As(err, new(*tool.Fault)) { // a fault is about the arguments
		return nil, tool.Faultf(tool.CodeInvalidItem, "%s: %w", found.ID, err).With("path", found.Path)
	}
	return t.Notes, nil
}

// warningsOfTool is how many warnings of a chain are about the tool itself, which
// its caller has been told of.
func warningsOfTool(c *chain.Chain) int {
	if c.Tool().Verified.Warning != "" {
		return 1
	}
	return 0
}

func (e *Executor) ofChain(c *chain.Chain) (*Tool, error) {
	id := c.Tool().ID
	if c.Primitive() == chain.Builtin {
		t, known := e.Named(id)
		if !known {
			return nil, noSuchBuiltin(c.Tool().Found)
		}
		return t, nil
	}
	if e.primitives[c.Primitive()] == nil {
		return nil, tool.Faultf(tool.CodeUnsupported, "this version has no primitive %s, which %s needs", c.Primitive(), id)
	}
	d, err := c.Definition()
	if err != nil {
		return nil, err
	}
	t := &Tool{Definition: d, chain: c}
	if t.Notes, err = e.primitives[c.Primitive()].Check(c); err != nil {
		return nil, err
	}
	t.Warnings = slices.Clone(t.Notes)
	if note := c.Tool().Doc.SchemaNote(); note != "" {
		t.Warnings = append(t.Warnings, note)
	}
	return t, nil
}

// builtinOf is the tool of an item for an executor that runs built-in tools only.
func (e *Executor) builtinOf(found *resolve.Found) (*Tool, error) {
	doc, err := found.Tool()
	if err != nil {
		return nil, err
	}
	if chain.Meant(doc.ExecutorID) != chain.Builtin {
		return nil, tool.Faultf(tool.CodeUnsupported, "built-in tools only run here, and %s is none", found.ID).
			With("executor_id", doc.ExecutorID).With("path", found.Path)
	}
	t, known := e.Named(found.ID)
	if !known {
		return nil, noSuchBuiltin(found)
	}
	t.Chain = []tool.Link{
		{ItemID: found.ID, Space: found.Space, Path: found.Path},
		{ItemID: chain.Builtin, Space: item.System},
	}
	return t, nil
}

func noSuchBuiltin(found *resolve.Found) error {
	return tool.Faultf(tool.CodeUnsupported, "%s says it is built in, but this version has no such tool", found.ID).
		With("path", found.Path)
}

// Call is what a tool is run with.
type Call struct {
	Env  tool.Env
	Args json.RawMessage // a JSON object; empty stands for one without members
	// Secrets are those that Args may name by their placeholders; nil when there are
	// none. The result of the tool must be masked.
	Secrets Secrets
	// Planned is told what an item comes down to, before it runs; it may be nil.
	Planned func(*chain.Plan)
	// Warn is told the warnings of [Executor.RunItem]; it may be nil.
	Warn func(string)
}

// RunItem runs the tool that an id means now: what was good when it was offered may
// have been changed since.
func (e *Executor) RunItem(ctx context.Context, r *resolve.Resolver, id string, c Call) (any, error) {
	t, err := e.Find(r, id)
	if err != nil {
		return nil, err
	}
	if c.Warn != nil {
		c.Planned = func(p *chain.Plan) {
			for _, w := range slices.Concat(t.Warnings, p.Warnings) {
				c.Warn(w)
			}
		}
	}
	return e.Run(ctx, t, c)
}

// Run runs a tool and returns its result, which marshals to JSON. A mistake of the
// caller comes back as a *tool.Fault, a panic as a [tool.PanicError], and any other
// error is a failure of the tool.
func (e *Executor) Run(ctx context.Context, t *Tool, c Call) (any, error) {
	return tool.Guarded(t.Definition.ID, func() (any, error) {
		args, err := Reveal(c.Secrets, t.Definition, arguments(c))
		if err != nil {
			return nil, err
		}
		if t.builtin != nil {
			return t.builtin.Call(ctx, c.Env, args)
		}
		plan, err := e.plan(ctx, t, c.Env, args)
		if err != nil {
			return nil, err
		}
		if c.Planned != nil {
			c.Planned(plan)
		}
		return e.primitives[t.chain.Primitive()].Run(ctx, plan)
	})
}

// Plan says what running a tool would come to, and runs nothing of it; it is nil for
// built-in tools, which only have their arguments checked.
func (e *Executor) Plan(ctx context.Context, t *Tool, c Call) (*chain.Plan, error) {
	if t.builtin != nil {
		_, err := tool.Accept(t.Definition.Schema, arguments(c))
		return nil, err
	}
	return e.plan(ctx, t, c.Env, arguments(c))
}

// Server is the plan of an mcp_server item alone, for whoever asks the server what it
// has. The item is verified.
func (e *Executor) Server(ctx context.Context, found *resolve.Found, env tool.Env) (*chain.Plan, error) {
	if e.chains == nil {
		return nil, tool.Faultf(tool.CodeUnsupported, "only built-in tools run here")
	}
	return e.chains.Server(ctx, found, env)
}

func arguments(c Call) json.RawMessage {
	if len(c.Args) == 0 {
		return json.RawMessage("{}")
	}
	return c.Args
}

// plan checks the arguments and makes the plan.
func (e *Executor) plan(ctx context.Context, t *Tool, env tool.Env, args json.RawMessage) (*chain.Plan, error) {
	params, err := tool.Fill(t.chain.Schema(), args)
	if err != nil {
		if f, ok := errors.AsType[*tool.Fault](err); ok {
			f.Message = env.Masked(f.Message)
			return nil, f
		}
		return nil, tool.Faultf(tool.CodeInvalidItem, "%s: %w", t.Definition.ID, err).With("path", t.chain.Tool().Path)
	}
	return e.chains.Plan(ctx, t.chain, env, params)
}
