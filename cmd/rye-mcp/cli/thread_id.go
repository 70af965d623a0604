package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
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

// completeID finds the one thread whose id is or begins with what was given.
func completeID(ctx context.Context, p *project, given string) (thread.ID, error) {
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

// idsWithPrefix finds the newest threads whose id begins so. It stops at a
// handful, as none or one is what the caller hopes for.
func idsWithPrefix(ctx context.Context, p *project, prefix string) ([]string, error) {
	var found []string
	req := control.ListRequest{Text: prefix, Limit: maxListed}
	for {
		list, err := p.control.List(ctx, req)
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
	f := tool.Faultf(tool.CodeNotFound, "no thread %q in this project", given).WithHint("rye-mcp threads list")
	newest, err := p.control.List(ctx, control.ListRequest{Limit: maxListed})
	if err != nil {
		return f // the suggestions are a courtesy
	}
	if near := nearIDs(given, newest.Threads); len(near) > 0 {
		return f.With("nearest_ids", near)
	}
	return f
}

// nearIDs are the threads that a mistyped id may mean, newest first: those that
// contain it, and those whose id up to its length is a few edits away.
func nearIDs(given string, threads []control.Summary) []string {
	wanted := strings.ToLower(given)
	most := max(2, len(wanted)/3) // as for the ids of items
	var near []string
	for _, t := range threads {
		id := strings.ToLower(string(t.ThreadID))
		if strings.Contains(id, wanted) || item.EditDistance(wanted, id[:min(len(id), len(wanted))], most) <= most {
			near = append(near, string(t.ThreadID))
		}
		if len(near) == handful {
			break
		}
	}
	return near
}
