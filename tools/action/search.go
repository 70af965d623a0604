package action

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// SearchResult is a page of what was found.
type SearchResult struct {
	Success    bool `json:"success"`
	NextOffset int  `json:"next_offset,omitempty" jsonschema:"there is more: give it back as offset to read on"`
	search.Page
}

// Search finds items.
func (a *Actions) Search(ctx context.Context, c Caller, r SearchRequest) (*SearchResult, error) {
	result, err := a.search(ctx, c, r)
	if err != nil {
		return nil, Fault(err)
	}
	return result, nil
}

func (a *Actions) search(ctx context.Context, c Caller, r SearchRequest) (*SearchResult, error) {
	if err := checkProject(c, r.ProjectPath); err != nil {
		return nil, err
	}
	if err := permitSearch(c, cmp.Or(r.action, "search"), r.Scope); err != nil {
		return nil, err
	}
	find := a.Deps.Search
	if c.Env.Mask != nil {
		find = a.searchWithoutSecrets(c)
	}
	q, err := queryOf(r)
	if err != nil {
		return nil, err
	}
	page, err := find(ctx, q)
	if err != nil {
		return nil, err
	}
	if page.Results == nil {
		page.Results = []search.Hit{}
	}
	if page.Results, err = fitHits(page.Results, hitRoom(c, r)); err != nil {
		return nil, err
	}
	a.markUntrusted(page.Results)
	result := &SearchResult{Success: true, Page: page}
	if end := page.Offset + len(page.Results); len(page.Results) > 0 && end < page.Total {
		result.NextOffset = end
	}
	return result, nil
}

// markUntrusted says of hits that are not executed why their signature does not count.
func (a *Actions) markUntrusted(hits []search.Hit) {
	if len(hits) == 0 {
		return
	}
	gate := a.Trust.Once(a.Trust.Settings) // keys are read once
	for i, h := range hits {
		found, err := a.Resolver.In(h.Source).Find(h.Type, h.ID)
		if err != nil {
			continue // it has changed since, or its description says that it cannot be read
		}
		if v, err := gate.Verify(trust.SubjectOf(found)); err == nil && !v.Status.Good() {
			hits[i].Signature = string(v.Status)
		}
	}
}

// everySpace is a source that means no space alone.
const everySpace = "all"

// queryOf reads the options of a request.
func queryOf(r SearchRequest) (search.Query, error) {
	q := search.Query{
		Text: r.Query, Scope: r.Scope, Limit: r.Limit, Offset: r.Offset, Sort: r.SortBy, Threads: r.Include == IncludeThreads,
		Options: search.Options{Fuzzy: r.Fuzzy, Near: r.Proximity},
	}
	if r.Source != everySpace {
		q.Source = item.Space(r.Source)
	}
	for _, field := range r.Fields {
		name, words, ok := strings.Cut(field, ":")
		switch {
		case !ok:
			q.Fields = append(q.Fields, name)
		case q.Where == nil:
			q.Where = map[string]string{name: words}
		default:
			q.Where[name] = strings.TrimSpace(q.Where[name] + " " + words)
		}
	}
	var err error
	q.Filters, err = filtersOf(r.Filters)
	return q, err
}

// filtersOf reads filters: a value, or a list of which one has to match.
func filtersOf(given tool.Object) (map[string][]string, error) {
	fields := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(given.Raw()))
	decoder.UseNumber() // a version of 1.10 is none of 1.1
	if err := decoder.Decode(&fields); err != nil {
		return nil, badArgument("filters", err)
	}
	filters := map[string][]string{}
	for key, value := range fields {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			switch one.(type) {
			case string, bool, json.Number:
				filters[key] = append(filters[key], fmt.Sprint(one))
			default:
				return nil, &search.OptionError{Option: "filters." + item.Shown(key), Reason: "no text, number or list of them"}
			}
		}
	}
	return filters, nil
}

// permitSearch needs capabilities that cover the scope: every item type without
// one, and what is below an id as well as the id itself. The refusal names the
// first that is missing, of the action that was called.
func permitSearch(c Caller, action, scope string) error {
	sibling := map[string]string{"search": "fetch", "fetch": "search"}[action]
	for _, pattern := range searched(scope) {
		for _, s := range widened(pattern) {
			err := permit(c, "rye."+action+"."+s, "rye."+sibling+"."+s)
			if denied, ok := errors.AsType[*tool.Fault](err); ok && denied.Code == tool.CodePermissionDenied {
				return denied.With("missing_capability", "rye."+action+"."+pattern).
					WithHint("Give a scope that your capabilities cover, such as directive or tool.rye.file-system.*, or read one item with rye_fetch and item_id.")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// searched are the patterns of item types and ids that a scope takes in.
func searched(scope string) []string {
	scope = strings.ReplaceAll(scope, "/", ".")
	for _, action := range []string{"rye.search.", "rye.fetch."} {
		scope = strings.TrimPrefix(scope, action)
	}
	switch {
	case scope == "" || scope == "*":
		var all []string
		for _, kind := range item.Kinds() {
			all = append(all, string(kind)+".*")
		}
		return all
	case strings.Contains(scope, "*"):
		return []string{scope}
	case strings.Contains(scope, "."):
		return []string{scope, scope + ".*"}
	default:
		return []string{scope + ".*"}
	}
}

// widened are the texts that a capability must match to cover a pattern. Its "*"
// must be covered by a "*" and not by a "?": what covers one and two characters in
// its place is no "?".
func widened(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	return []string{pattern, strings.ReplaceAll(pattern, "*", "**")}
}
