package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// Resolver finds items in the three spaces. It keeps nothing between calls, so
// it always sees the files as they are, and is safe for concurrent use.
type Resolver struct {
	roots Roots
	only  item.Space // empty: all
	left  Left       // nil: there is nothing
	of    thread.ID  // that asks; empty: none does
}

// Left finds what threads have left under ids that name the directive or the request
// key of a thread and not the thread, see [item.NamesThread].
type Left interface {
	// Find returns the knowledge of that id as the thread of sees it; empty: none does.
	// The error is a [*NotFoundError] where there is none.
	Find(id string, of thread.ID) (*Found, error)
}

// New returns a resolver over roots. Folders need not exist; they are looked at
// when an item is asked for.
func New(roots Roots) *Resolver { return &Resolver{roots: roots} }

// WithLeft returns a resolver that finds what threads have left, too. They are of the
// project, and what they have left belongs to the project space.
func (r *Resolver) WithLeft(left Left) *Resolver {
	with := *r
	with.left = left
	return &with
}

// For returns the resolver of a thread: which others it means by the latest of a
// directive depends on where it stands among them.
func (r *Resolver) For(of thread.ID) *Resolver {
	mine := *r
	mine.of = of
	return &mine
}

// At returns the resolver of items that lie elsewhere, in the same way: roots has the
// directories of project and user.
func (r *Resolver) At(roots Roots) *Resolver {
	there := *r
	there.roots.Project, there.roots.User = roots.Project, roots.User
	return &there
}

// In returns a resolver that looks at one space only.
func (r *Resolver) In(space item.Space) *Resolver {
	only := &Resolver{only: space, of: r.of}
	switch space {
	case item.Project:
		only.roots.Project, only.left = r.roots.Project, r.left
	case item.User:
		only.roots.User = r.roots.User
	case item.System:
		only.roots.System = r.roots.System
	}
	return only
}

// Roots returns what the resolver was made with.
func (r *Resolver) Roots() Roots { return r.roots }

// UnreadableError says that an item is there but cannot be read: a symbolic
// link that leaves its space, something other than a regular file, a file that
// is too large, or one that the system refuses to open. Items of lower
// precedence do not stand in for it.
type UnreadableError struct {
	Kind  item.Kind
	ID    string
	Space item.Space
	Path  string
	Err   error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s %q in the %s space cannot be read (%s): %v", e.Kind, e.ID, e.Space, e.Path, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// Find returns the item with the given kind and id from the first space that
// has it. Errors: [item.ErrBadID], [*NotFoundError] with ids that look alike,
// [*UnreadableError].
func (r *Resolver) Find(kind item.Kind, id string) (*Found, error) {
	found, err := r.Look(kind, id)
	if err == nil && found == nil {
		return nil, r.notFound(kind, id)
	}
	return found, err
}

// FindAny looks a bare id up as every kind. Besides the errors of Find it
// returns [*AmbiguousError] when items of several kinds have the id.
func (r *Resolver) FindAny(id string) (*Found, error) {
	if item.NamesThread(id) {
		return r.Find(item.Knowledge, id)
	}
	var hits []*Found
	for _, kind := range item.Kinds() {
		found, err := r.Look(kind, id)
		if err != nil {
			return nil, err
		}
		if found != nil {
			hits = append(hits, found)
		}
	}
	switch len(hits) {
	case 0:
		return nil, r.notFound("", id)
	case 1:
		return hits[0], nil
	}
	ambiguous := &AmbiguousError{ID: id}
	for _, f := range hits {
		ambiguous.Kinds = append(ambiguous.Kinds, f.Kind)
	}
	return nil, ambiguous
}

// Look is Find for callers who go on where no space has the item: it is nil then, and no
// items are listed for ids that look alike. Of what threads leave, [*NotFoundError] says
// why there is none.
func (r *Resolver) Look(kind item.Kind, id string) (found *Found, err error) {
	if err := item.CheckID(id); err != nil {
		return nil, err
	}
	if kind == item.Knowledge && item.NamesThread(id) {
		return r.leftBy(id)
	}
	spaces, err := r.open(kind, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(spaces)) }()
	for _, s := range spaces {
		for _, ext := range s.extensions(id) {
			if found != nil {
				// A shadowed item only has to be there: it is not read.
				if shadowed, ok := s.stat(id, ext); ok {
					found.Shadows = append(found.Shadows, shadowed)
				}
				continue
			}
			if found, err = s.read(id, ext); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// leftBy finds what the thread has left that an id names. No file stands in for it.
func (r *Resolver) leftBy(id string) (*Found, error) {
	if r.left == nil {
		return nil, &NotFoundError{Kind: item.Knowledge, ID: id, Space: r.only, Why: "no threads can be asked here"}
	}
	return r.left.Find(id, r.of)
}

// Parse parses what was found as its kind, and returns what is wrong with it.
func (f *Found) Parse() (err error) {
	switch f.Kind {
	case item.Directive:
		_, err = f.Directive()
	case item.Knowledge:
		_, err = f.Knowledge()
	case item.Tool:
		_, err = f.Tool()
	}
	return err
}

// Directive parses a found directive.
func (f *Found) Directive() (*item.DirectiveDoc, error) {
	if err := f.is(item.Directive); err != nil {
		return nil, err
	}
	return f.parseDirective()
}

// Knowledge parses a found knowledge entry.
func (f *Found) Knowledge() (*item.KnowledgeDoc, error) {
	if err := f.is(item.Knowledge); err != nil {
		return nil, err
	}
	return f.parseKnowledge()
}

// Tool reads the metadata of a found tool.
func (f *Found) Tool() (*item.ToolDoc, error) {
	if err := f.is(item.Tool); err != nil {
		return nil, err
	}
	return parse.Tool(f.Path, f.Content)
}

func (f *Found) is(kind item.Kind) error {
	if f.Kind != kind {
		return fmt.Errorf("%q is a %s, not a %s", f.ID, f.Kind, kind)
	}
	return nil
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
