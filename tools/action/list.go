package action

import (
	"context"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ListRequest is which items are listed.
type ListRequest struct {
	Pattern  string       // of ids; empty: all
	Kinds    []item.Kind  // none: all
	Spaces   []item.Space // none: all
	Shadowed bool         // those that another one hides, too
	Threads  bool         // the records of threads, too
}

// Listed is an item of a list.
type Listed struct {
	Type        item.Kind    `json:"type"`
	ID          string       `json:"id"`
	Space       item.Space   `json:"space"`
	Path        string       `json:"path"`
	Description string       `json:"description,omitempty"`
	Category    string       `json:"category,omitempty"`
	Version     string       `json:"version,omitempty"`
	Signature   trust.Status `json:"signature"`
	Changed     *time.Time   `json:"changed,omitempty"`
	ShadowedBy  item.Space   `json:"shadowed_by,omitempty"`
	Error       string       `json:"error,omitempty"` // why it cannot be executed
}

// List lists items by kind, id and precedence, without an index. The error is a
// *tool.Fault.
func (a *Actions) List(ctx context.Context, r ListRequest) ([]Listed, error) {
	if r.Pattern != "" && !doublestar.ValidatePattern(r.Pattern) {
		return nil, tool.Faultf(tool.CodeBadArguments, "%q is not a pattern of ids", r.Pattern).
			WithHint("* stands for anything within one folder, ** across folders.")
	}
	all := []Listed{}
	keys := New(a.Deps)
	keys.Trust = a.Trust.Once(a.Trust.Settings) // which are read once
	for _, kind := range item.Kinds() {
		if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, kind) {
			continue
		}
		list := a.Resolver.Items
		if r.Threads {
			list = a.Resolver.All
		}
		entries, err := list(kind)
		if err != nil {
			return nil, Fault(err)
		}
		first := map[string]resolve.Entry{} // of each id, which hides the others
		for _, e := range entries {
			winner, shadowed := first[e.ID]
			if !shadowed {
				first[e.ID] = e
			}
			if shadowed && !r.Shadowed || !r.wants(e) {
				continue
			}
			if ctx.Err() != nil {
				return nil, Fault(context.Cause(ctx))
			}
			listed := keys.listed(e)
			if shadowed {
				listed.ShadowedBy = winner.Space
			}
			all = append(all, listed)
		}
	}
	return all, nil
}

func (r ListRequest) wants(e resolve.Entry) bool {
	if len(r.Spaces) > 0 && !slices.Contains(r.Spaces, e.Space) {
		return false
	}
	return r.Pattern == "" || r.Pattern == e.ID || doublestar.MatchUnvalidated(r.Pattern, e.ID)
}

func (a *Actions) listed(e resolve.Entry) Listed {
	l := Listed{Type: e.Kind, ID: e.ID, Space: e.Space, Path: e.Path, Signature: unknownSignature}
	if !e.ModTime.IsZero() {
		at := e.ModTime.UTC()
		l.Changed = &at
	}
	found, err := a.Resolver.In(e.Space).Find(e.Kind, e.ID)
	if err != nil {
		l.Error = err.Error()
		return l
	}
	if found.Path != e.Path { // of two languages, or places, in one space the first is what is found
		return l
	}
	l.Signature = a.signature(found).State
	says, err := metadata(found)
	if err != nil {
		l.Error = err.Error()
		return l
	}
	for key, to := range map[string]*string{"description": &l.Description, "category": &l.Category, "version": &l.Version} {
		*to, _ = says[key].(string)
	}
	return l
}
