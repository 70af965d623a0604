package prompt

import (
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Composer puts directives together with what they extend.
type Composer struct {
	Resolver *resolve.Resolver
	Trust    *trust.Gate
}

// Composition is a directive together with what it inherits. Of its ancestors it
// has context, suppressions, hooks and, when it declares none itself,
// permissions; everything else is the directive's own.
type Composition struct {
	Chain []Link // from the leaf to the root; never empty
	// Context is what belongs into the system prompt, then what stands before and
	// after the directive; of each, what the root asks for first. An item stands
	// once in a position, where the directive nearest to the root has put it.
	Context []KnowledgeRef
	// Suppressed are the ids of items and hooks that a directive of the chain does
	// not want, whoever else asks for them.
	Suppressed []string
	// Permissions are those of the leaf, else of the nearest ancestor that declares
	// some, which is PermissionsFrom; that is empty when nobody does.
	Permissions     item.Permissions
	PermissionsFrom string
	Hooks           []hook.DirectiveHooks // those of the root first
}

// Positions of context in a prompt.
const (
	System = "system"
	Before = "before"
	After  = "after"
)

// KnowledgeRef is a knowledge item that belongs into the prompt.
type KnowledgeRef struct {
	ID        string
	Position  string
	Directive string // id of the one that asks for it
	Space     item.Space
	Path      string
	Hash      string // SHA-256 of the file, hex
	Warning   string // of the trust gate
	Doc       *item.KnowledgeDoc
}

// ContextError says that a knowledge item which a directive declares as context
// cannot be had.
type ContextError struct {
	Directive string // id
	Path      string // of the directive's file
	Position  string
	Item      string // id of the knowledge
	Err       error
}

func (e *ContextError) Error() string {
	return fmt.Sprintf("%s (%s) asks for <%s>%s</%s>: %v", e.Directive, e.Path, e.Position, e.Item, e.Position, e.Err)
}

func (e *ContextError) Unwrap() error { return e.Err }

// Compose puts leaf together with what it extends: the chain that begins with
// the directive extends, which is the leaf's own choice or that of a hook, and is
// empty for none. The caller has asked the trust gate about the leaf; the gate is
// asked here about every other directive and all knowledge. Errors: a
// [*ChainError], a [*ContextError], or what is wrong with the leaf itself.
func (c Composer) Compose(leaf *resolve.Found, extends string) (*Composition, error) {
	chain, err := c.Chain(leaf, extends)
	if err != nil {
		return nil, err
	}
	out := &Composition{Chain: chain}
	for _, link := range chain {
		if link.Doc.Permissions.Declared {
			out.Permissions, out.PermissionsFrom = link.Doc.Permissions, link.ID
			break
		}
	}
	for _, link := range slices.Backward(chain) {
		out.Suppressed = union(out.Suppressed, link.Doc.Context.Suppress)
		if len(link.Doc.Hooks) > 0 {
			out.Hooks = append(out.Hooks, hook.DirectiveHooks{Directive: link.ID, Path: link.Path, Hooks: link.Doc.Hooks})
		}
	}
	for _, position := range []string{System, Before, After} {
		if err := c.addContext(out, position); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Warnings are what the trust gate had to say about ancestors and context, once
// each.
func (c *Composition) Warnings() []string {
	var all []string
	for _, link := range c.Chain {
		all = append(all, link.Warning)
	}
	for _, ref := range c.Context {
		all = append(all, ref.Warning)
	}
	return slices.DeleteFunc(union(nil, all), func(s string) bool { return s == "" })
}

// addContext loads what the chain asks for in one position.
func (c Composer) addContext(to *Composition, position string) error {
	done := slices.Clone(to.Suppressed)
	for _, link := range slices.Backward(to.Chain) {
		for _, id := range at(link.Doc.Context, position) {
			if slices.Contains(done, id) {
				continue
			}
			done = append(done, id)
			ref, err := c.knowledge(id)
			if err != nil {
				return &ContextError{Directive: link.ID, Path: link.Path, Position: position, Item: id, Err: err}
			}
			ref.Position, ref.Directive = position, link.ID
			to.Context = append(to.Context, ref)
		}
	}
	return nil
}

// knowledge finds, checks and reads a knowledge item.
func (c Composer) knowledge(id string) (KnowledgeRef, error) {
	found, err := c.Resolver.Find(item.Knowledge, id)
	if err != nil {
		return KnowledgeRef{}, err
	}
	decision, err := c.Trust.Check(trust.SubjectOf(found))
	if err != nil {
		return KnowledgeRef{}, err
	}
	doc, err := found.Knowledge()
	if err != nil {
		return KnowledgeRef{}, err
	}
	return KnowledgeRef{
		ID: id, Space: found.Space, Path: found.Path, Hash: found.Hash, Warning: decision.Warning, Doc: doc,
	}, nil
}

func at(c item.Context, position string) []string {
	switch position {
	case System:
		return c.System
	case Before:
		return c.Before
	default:
		return c.After
	}
}

// union appends to all what it does not have yet.
func union(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
