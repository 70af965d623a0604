package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Limits of a page of results.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// Query is what to search for.
type Query struct {
	// Text is words that all have to occur, "phrases" and the beginnings of words
	// with a *; * alone lists everything.
	Text string
	// Scope is a kind ("directive"), a kind and ids ("tool.rye.core.*"), or the
	// same as a capability ("rye.search.tool.rye.core.*"); empty is everything.
	Scope string
	// Threads adds the records of threads, knowledge below agent/threads. They are
	// left out otherwise, unless the scope names them.
	Threads bool
	Limit   int // results of the page; 0 is DefaultLimit, at most MaxLimit
	Offset  int // results to leave out before the page
}

// Hit is an item that was found.
type Hit struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Category    string       `json:"category"`
	Score       float64      `json:"score"` // 0 to 1, relative to the best hit of the query; 1 where the query is the id or the name
	Type        item.Kind    `json:"type"`
	Source      item.Space   `json:"source"`
	Preview     string       `json:"preview"`               // text around the first match, or the beginning
	Shadows     []item.Space `json:"shadows,omitempty"`     // where items that this one hides are
	ShadowedBy  item.Space   `json:"shadowed_by,omitempty"` // where the item that hides this one is
}

// Page is a part of the results: an item whose id is the text of the query, then
// those whose name it is, then the others, best first. Equal scores are ordered
// project, user, system, and then by id.
type Page struct {
	Total   int    `json:"total"` // on all pages
	Query   string `json:"query"`
	Scope   string `json:"scope"`
	Limit   int    `json:"limit"`
	Offset  int    `json:"offset"`
	Results []Hit  `json:"results"`
}

// Search brings the index up to date and answers a query from it. A text or
// scope that cannot be searched for is a [*QueryError], which says what is
// valid.
func (x *Index) Search(ctx context.Context, q Query) (Page, error) {
	terms, err := parseText(q.Text)
	if err != nil {
		return Page{}, err
	}
	within, err := parseScope(q.Scope)
	if err != nil {
		return Page{}, err
	}
	within.threads = within.threads || q.Threads
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	q.Offset = max(q.Offset, 0)

	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return Page{}, context.Cause(ctx)
	}
	page, err := x.answer(ctx, q, terms, within)
	switch {
	case ctx.Err() != nil:
		return Page{}, context.Cause(ctx)
	case err != nil:
		return Page{}, fmt.Errorf("search: %w", err)
	}
	return page, nil
}

// answer searches. When the database fails it is opened anew, or made anew if it
// is damaged; when it fails again the index moves to memory.
func (x *Index) answer(ctx context.Context, q Query, terms []term, within scope) (Page, error) {
	if x.closed {
		return Page{}, errors.New("the index is closed")
	}
	page, err := x.attempt(ctx, q, terms, within)
	for _, giveUpFile := range []bool{false, true} {
		if !isFailure(err) || ctx.Err() != nil {
			break
		}
		// The database is given up, whatever Close says.
		_ = x.drop()
		switch {
		case giveUpFile:
			x.path = ""
		case isDamage(err) && x.path != "":
			if removeFile(x.path) != nil {
				x.path = ""
			}
		}
		page, err = x.attempt(ctx, q, terms, within)
	}
	return page, err
}

func (x *Index) attempt(ctx context.Context, q Query, terms []term, within scope) (Page, error) {
	if x.db == nil {
		if err := x.open(ctx); err != nil {
			return Page{}, err
		}
	}
	if err := x.refresh(ctx); err != nil {
		return Page{}, err
	}
	return x.find(ctx, q, terms, within)
}
