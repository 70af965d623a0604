package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/replay"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Starter says what recorded threads would be started with today.
type Starter struct {
	Planner  *plan.Planner
	Settings *settings.Source
}

// Start is what a recorded thread would be started with today.
type Start struct {
	Meta    thread.Meta
	Secrets map[string]string // stand-ins for the values of its secret inputs
	// Differences are those of what the directive asks for.
	Differences []replay.Difference
}

// Today plans a recorded thread with the directive, and what that is composed of, as they
// are now. Directive is another one to be run with the same inputs; empty: its own.
// Everything passes the trust gate as at a start. Nothing is written.
func (s *Starter) Today(ctx context.Context, r *recording.Recording, t *recording.Thread, directive string) (*Start, error) {
	planner := *s.Planner
	planner.Resolver = planner.Resolver.WithLeft(replay.LeftIn(t))
	now := planner.In(s.Settings.Begin())
	p := &plan.Plan{Request: action.StartRequest{Directive: t.Directive, Inputs: t.Meta.Inputs, Model: t.Meta.Model}}
	if directive != "" {
		p.Request.Directive = directive
	}
	if err := now.FindDirective(p); err != nil {
		return nil, threads.Fault(err)
	}
	if err := giveInputs(p, t.Meta); err != nil {
		return nil, threads.Fault(err)
	}
	if err := now.Inherit(p, ""); err != nil {
		return nil, threads.Fault(err)
	}
	p.Grant = grantOf(p.Permissions, t.Meta)
	before := recordedDirective(r, t)
	p.Limits = limitsOf(t.Meta.Limits, before, p.Doc)
	meta := p.Meta(thread.Record{
		ThreadID: t.ThreadID, Kind: thread.KindDirective, ParentID: t.Meta.ParentID, Status: thread.Created,
		CreatedAt: t.Meta.CreatedAt, UpdatedAt: t.Meta.CreatedAt, Model: t.Meta.Model,
	})
	meta.ContinuationOf, meta.ChainRootID, meta.Continuation = t.Meta.ContinuationOf, t.Meta.ChainRootID, t.Meta.Continuation
	meta.ForkedFrom, meta.BeginsWith = t.Meta.ForkedFrom, t.Meta.BeginsWith
	meta.Firing, meta.TraceID, meta.Warnings = t.Meta.Firing, t.Meta.TraceID, nil
	return &Start{Meta: meta, Secrets: p.Secrets, Differences: asked(t, before, p)}, ctx.Err()
}

// giveInputs checks the recorded inputs against the directive of today, but for a thread
// that continues another, which had them already.
func giveInputs(p *plan.Plan, was thread.Meta) error {
	p.Inputs, p.Secrets = maps.Clone(was.Inputs), map[string]string{}
	for _, name := range inputs.Secrets(p.Doc, was.Inputs) {
		p.Secrets[name] = inputs.Placeholder(name) // of the value nothing is on record
	}
	if was.Continuation != nil {
		return nil
	}
	open, given := *p.Doc, maps.Clone(was.Inputs)
	open.Inputs = slices.DeleteFunc(slices.Clone(open.Inputs), func(in item.Input) bool { return p.Secrets[in.Name] != "" })
	maps.DeleteFunc(given, func(name string, _ any) bool { return p.Secrets[name] != "" })
	values, _, err := inputs.Validate(&open, given)
	maps.Copy(p.Inputs, values)
	return err
}

// grantOf is what the thread may do by what its directive declares today, within what the
// threads above it could do then.
func grantOf(declared item.Permissions, was thread.Meta) permission.Grant {
	if len(was.Ceiling) == 0 {
		return permission.ForChild(declared, nil)
	}
	return permission.ForChild(declared, &permission.Grant{Own: was.Ceiling[0], Ceiling: was.Ceiling[1:]})
}

// recordedDirective is the directive as it was; nil where the recording does not have it.
func recordedDirective(r *recording.Recording, t *recording.Thread) *item.DirectiveDoc {
	used, content, found := r.Item(item.Directive, t.Directive)
	if !found || used.Hash != t.Meta.DirectiveHash {
		return nil
	}
	doc, err := (&resolve.Found{Entry: resolve.Entry{Kind: item.Directive, ID: t.Directive, Path: t.Directive, Ext: ".md"}, Content: content}).Directive()
	if err != nil {
		return nil
	}
	return doc
}

// limitsOf are those that the thread had, with those that its directive has changed
// since. Where it is not known what it declared, they are as they were.
func limitsOf(was thread.Limits, before, today *item.DirectiveDoc) thread.Limits {
	if before == nil {
		return was
	}
	changed := item.LimitSet{}
	for name, value := range today.Limits {
		if old, had := before.Limits[name]; !had || old != value {
			changed[name] = value
		}
	}
	limits, err := limit.Resolve(limit.Set(was), changed, nil, nil)
	if err != nil {
		return was
	}
	return limits
}

// asked compares what the directive asks for beside its prompt.
func asked(t *recording.Thread, before *item.DirectiveDoc, p *plan.Plan) []replay.Difference {
	if before == nil {
		return nil
	}
	var notes []string
	if !reflect.DeepEqual(before.Model, p.Doc.Model) {
		notes = append(notes, fmt.Sprintf("the directive asks for another model (%s, then %s); the answers are those of %s",
			modelText(p.Doc.Model), modelText(before.Model), t.Meta.Model))
	}
	if !maps.Equal(before.Limits, p.Doc.Limits) {
		notes = append(notes, fmt.Sprintf("the directive has other limits: %v, then %v", p.Doc.Limits, before.Limits))
	}
	if len(notes) == 0 {
		return nil
	}
	return []replay.Difference{{Part: replay.PartStart, Note: strings.Join(notes, "; ")}}
}

func modelText(m item.ModelChoice) string {
	var parts []string
	for _, part := range []string{m.Provider, m.ID, m.Tier} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}
