package action

import (
	"context"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

// SearchResult is a page of what was found.
type SearchResult struct {
	Success bool `json:"success"`
	search.Page
	NextOffset int `json:"next_offset,omitempty" jsonschema:"there is more: give it back as offset to read on"`
}

// Search finds items as a *SearchResult.
func (a *Actions) Search(ctx context.Context, c Caller, r SearchRequest) (any, error) {
	result, err := a.search(ctx, c, r)
	if err != nil {
		return nil, Fault(err)
	}
	return result, nil
}

func (a *Actions) search(ctx context.Context, c Caller, r SearchRequest) (any, error) {
	if err := checkProject(c, r.ProjectPath); err != nil {
		return nil, err
	}
	if err := permitSearch(c, r.Scope); err != nil {
		return nil, err
	}
	page, err := a.Deps.Search(ctx, search.Query{Text: r.Query, Scope: r.Scope, Limit: r.Limit, Offset: r.Offset})
	if err != nil {
		return nil, err
	}
	if page.Results == nil {
		page.Results = []search.Hit{}
	}
	if page.Results, err = fitHits(page.Results); err != nil {
		return nil, err
	}
	result := &SearchResult{Success: true, Page: page}
	if end := page.Offset + len(page.Results); len(page.Results) > 0 && end < page.Total {
		result.NextOffset = end
	}
	return result, nil
}

// permitSearch needs the capabilities that cover the scope: every item type
// without one, and what is below an id as well as the id itself.
func permitSearch(c Caller, scope string) error {
	scope = strings.TrimPrefix(strings.ReplaceAll(scope, "/", "."), "rye.search.")
	var needed []string
	switch {
	case scope == "" || scope == "*":
		for _, kind := range item.Kinds() {
			needed = append(needed, string(kind))
		}
	case strings.Contains(scope, "*"):
		// The scope's own "*" must be covered by a "*" and not by a "?". What
		// covers one and two characters in its place is no "?".
		needed = []string{scope, strings.ReplaceAll(scope, "*", "**")}
	case strings.Contains(scope, "."):
		needed = []string{scope, scope + ".*", scope + ".**"}
	default:
		needed = []string{scope}
	}
	for _, s := range needed {
		if err := permit(c, "rye.search."+s, "rye.fetch."+s); err != nil {
			return err
		}
	}
	return nil
}
