package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search/query"
)

// Limits of a page of results.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// QueryError says that the text of a query is none, and where.
type QueryError = query.Error

// Query is what to search for.
type Query struct {
	// Text is words that all have to occur, AND, OR, NOT, parentheses, "phrases" and
	// the beginnings of words with a *; * alone lists everything.
	Text string
	// Scope is a kind ("directive"), a kind and ids ("tool.rye.core.*"), or the
	// same as a capability ("rye.search.tool.rye.core.*"); empty is everything.
	Scope string
	// Threads adds the records of threads, knowledge below agent/threads. They are
	// left out otherwise, unless the scope names them.
	Threads bool
	Source  item.Space // only of this space; empty: of all
	Options
	Sort   Sort // empty: by score
	Limit  int  // results of the page; 0 is DefaultLimit, at most MaxLimit
	Offset int  // results to leave out before the page
}

// Options are what else a hit has to be.
type Options struct {
	Fields  []string            // where the words of the query are looked for; none: in all
	Where   map[string]string   // queries of single fields, which have to match as well
	Filters map[string][]string // facts that an item has to have; see [Query]
	// Fuzzy finds words that take so many letters to be changed, at most MaxFuzzy.
	Fuzzy int
	// Near is how many words may stand between those that have to occur together, at
	// most MaxNear; 0 lets them stand anywhere.
	Near int
}

// Sort is the order of results.
type Sort string

// The orders. By score, an item whose id is the text of the query comes first, then
// those whose name it is, then the others, best first. Equal ones are ordered
// project, user, system, and then by id.
const (
	ByScore Sort = "score"
	ByDate  Sort = "date" // of the files, newest first; the system space has none
	ByName  Sort = "name"
)

// Sorts lists them.
func Sorts() []Sort { return []Sort{ByScore, ByDate, ByName} }

// Hit is an item that was found, as its file is now.
type Hit struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Category    string     `json:"category"`
	Score       float64    `json:"score"` // 0 to 1, relative to the best hit of the query; 1 where the query is the id or the name
	Type        item.Kind  `json:"type"`
	Source      item.Space `json:"source"`
	Preview     string     `json:"preview"`           // text around the first match, or the beginning
	Changed     *time.Time `json:"changed,omitempty"` // of results by date
	// Signature says why the item is not executed, where whoever searches looks at that.
	Signature  string       `json:"signature,omitempty"`
	Shadows    []item.Space `json:"shadows,omitempty"`     // where items that this one hides are
	ShadowedBy item.Space   `json:"shadowed_by,omitempty"` // where the item that hides this one is
}

// Page is a part of the results.
type Page struct {
	Total   int    `json:"total"` // on all pages
	Query   string `json:"query"`
	Scope   string `json:"scope"`
	Limit   int    `json:"limit"`
	Offset  int    `json:"offset"`
	Index   string `json:"index,omitempty"` // why results may be missing: the index is being built
	Hint    string `json:"hint,omitempty"`  // what to try when there are none
	Results []Hit  `json:"results"`
	// Building counts the items that are not indexed yet.
	Building int `json:"-"`
}

// Search brings the index up to date and answers a query from it. When that takes
// longer than Patience, it goes on while the page says so. A text that cannot be
// searched for is a [*QueryError], and what is wrong beside it an [*OptionError];
// both say what is valid.
func (x *Index) Search(ctx context.Context, q Query) (Page, error) {
	l, err := newLookup(q)
	if err != nil {
		return Page{}, err
	}
	if err := x.awaitBuilder(ctx); err != nil {
		return Page{}, err
	}
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return Page{}, context.Cause(ctx)
	}
	page, err := x.answer(ctx, l)
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
func (x *Index) answer(ctx context.Context, l *lookup) (Page, error) {
	if x.closed {
		return Page{}, errors.New("the index is closed")
	}
	page, err := x.attempt(ctx, l)
	for _, giveUpFile := range []bool{false, true} {
		if !isFailure(err) || ctx.Err() != nil {
			break
		}
		// The database is given up, whatever Close says.
		_ = x.drop()
		switch {
		case giveUpFile:
			x.leaveFile(err)
		case isDamage(err) && x.path != "":
			if removing := x.removeFile(); removing != nil {
				x.leaveFile(removing)
			}
		}
		page, err = x.attempt(ctx, l)
	}
	return page, err
}

func (x *Index) attempt(ctx context.Context, l *lookup) (Page, error) {
	if x.db == nil {
		if err := x.open(ctx); err != nil {
			return Page{}, err
		}
	}
	state, err := x.refresh(ctx, l.within.threads)
	if err != nil {
		return Page{}, err
	}
	page, err := x.find(ctx, l)
	page.Index, page.Building = state.String(), state.building
	return page, err
}
