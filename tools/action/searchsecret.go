package action

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/search"
)

// maxSecretHits bounds how many hits are looked through for secrets.
const maxSecretHits = 1000

// searchWithoutSecrets searches as if the items whose text has a secret of the
// calling thread were not there. Which words find such an item, what is shown of it,
// how it ranks and whether it counts would each tell a part of the secret.
func (a *Actions) searchWithoutSecrets(c Caller) func(context.Context, search.Query) (search.Page, error) {
	return func(ctx context.Context, q search.Query) (search.Page, error) {
		all := q
		all.Limit, all.Offset = search.MaxLimit, 0
		var hits []search.Hit
		page, err := a.Deps.Search(ctx, all)
		for ; err == nil && len(page.Results) > 0 && all.Offset < maxSecretHits; page, err = a.Deps.Search(ctx, all) {
			hits = append(hits, slices.DeleteFunc(page.Results, func(h search.Hit) bool { return a.hasSecret(c, h) })...)
			all.Offset += search.MaxLimit
		}
		if err != nil {
			return page, err
		}
		page.Limit, page.Offset = min(cmp.Or(q.Limit, search.DefaultLimit), search.MaxLimit), q.Offset
		page.Total, page.Hint = len(hits), "" // which words occur nowhere tells of the others
		from := min(max(0, q.Offset), len(hits))
		page.Results = rescored(hits)[from:min(len(hits), from+page.Limit)]
		return page, nil
	}
}

// hasSecret reports whether the text of an item has one, or cannot be looked at.
func (a *Actions) hasSecret(c Caller, h search.Hit) bool {
	found, err := a.Resolver.Find(h.Type, h.ID)
	if err != nil || found.Space != h.Source {
		return true
	}
	text := h.ID + "\n" + string(found.Content)
	return c.Env.Masked(text) != text
}

// rescored makes the best hit's score 1 again.
func rescored(hits []search.Hit) []search.Hit {
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Score)
	}
	for i := range hits {
		if best > 0 {
			hits[i].Score = math.Round(hits[i].Score/best*1e4) / 1e4
		}
	}
	return hits
}
