package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// handful is how many ids are named where one was wanted.
const handful = 5

func completeIDs(ctx context.Context, p *project, given []string) ([]thread.ID, error) {
	var ids []thread.ID
	for _, g := range given {
		id, err := completeID(ctx, p, g)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// latest stands for the newest thread; latest:directive for the newest of a
// directive.
const latest = "latest"

// completeID finds the one thread whose id is or begins with what was given.
func completeID(ctx context.Context, p *project, given string) (thread.ID, error) {
	if word, directive, _ := strings.Cut(given, ":"); word == latest {
		return newestID(ctx, p, directive)
	}
	if _, err := thread.ParseID(given); err != nil {
		return "", &usageError{message: err.Error(), try: "rye-mcp threads list"}
	}
	if _, err := p.store.Get(ctx, thread.ID(given)); err == nil {
		return thread.ID(given), nil
	}
	found, err := idsWithPrefix(ctx, p, given)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", noThread(ctx, p, given)
	case len(found) == 1:
		return thread.ID(found[0]), nil
	default:
		return "", tool.Faultf(tool.CodeAmbiguous, "%q begins the id of several threads", given).
			WithHint("one of %s", strings.Join(found, ", "))
	}
}

// newestID finds the newest thread, of a directive where one is named.
func newestID(ctx context.Context, p *project, directive string) (thread.ID, error) {
	list, err := p.control.View.List(ctx, view.ListRequest{Directive: directive, Limit: 1})
	if err != nil {
		return "", err
	}
	if list.Count == 0 {
		return "", tool.Faultf(tool.CodeNotFound, "no thread of %s in this project", cmp.Or(directive, "any directive")).
			WithHint("rye-mcp threads list")
	}
	return list.Threads[0].ThreadID, nil
}

// idsWithPrefix finds the newest threads whose id begins so. It stops at a
// handful, as none or one is what the caller hopes for.
func idsWithPrefix(ctx context.Context, p *project, prefix string) ([]string, error) {
	var found []string
	req := view.ListRequest{Text: prefix, Limit: maxListed}
	for {
		list, err := p.control.View.List(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, t := range list.Threads {
			if strings.HasPrefix(string(t.ThreadID), prefix) {
				found = append(found, string(t.ThreadID))
			}
			if len(found) == handful {
				return found, nil
			}
		}
		if req.Cursor = list.NextCursor; req.Cursor == "" {
			return found, nil
		}
	}
}

// noThread is the error about an id that names nothing, with those that may have
// been meant.
func noThread(ctx context.Context, p *project, given string) error {
	if gone := p.control.Threads.Deleted(ctx, thread.ID(given)); gone != nil {
		return gone
	}
	f := tool.Faultf(tool.CodeNotFound, "no thread %q in this project", given).WithHint("rye-mcp threads list")
	if near := p.control.Threads.Nearest(ctx, thread.ID(given)); len(near) > 0 {
		return f.With("nearest_ids", texts(near))
	}
	return f
}
