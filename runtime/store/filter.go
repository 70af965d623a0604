package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Filter selects rows for List, and orders them.
type Filter struct {
	States    []thread.State // empty: all
	Directive string
	ParentID  thread.ID
	Text      string // substring of id, name or directive; ASCII letters match in either case
	Name      string // substring of the name alone, matched like Text
	// Metadata is a JSON object that the metadata of a row must contain: its members at
	// their names, objects in it likewise, other values as they are. A text also matches
	// the number or truth value that is written like it; null matches a name that is not
	// there.
	Metadata json.RawMessage
	// WithoutEntries leaves out the threads below sets.
	WithoutEntries bool
	// UsedBefore and UsedSince bound when a thread was last used; zero: no bound.
	UsedBefore, UsedSince time.Time
	Sort                  Sort
	Limit                 int    // rows a page; at most MaxPage, DefaultPage when 0
	Cursor                string // next of the previous page
}

// Check refuses a filter that selects nothing in any store: a state or an order that there
// is none of, a negative limit, metadata that no thread can have.
func (f Filter) Check() error {
	if f.Limit < 0 {
		return fmt.Errorf("limit %d is negative", f.Limit)
	}
	if !slices.Contains(SortKeys(), f.Sort.By) {
		return fmt.Errorf("%q is not a sort key; there are %q", f.Sort.By, SortKeys()[1:])
	}
	for _, state := range f.States {
		if !state.Valid() {
			return fmt.Errorf("%q is not a state of a thread; there are %v", state, thread.States())
		}
	}
	if len(f.Metadata) == 0 {
		return nil
	}
	_, err := thread.ParseMetadata(f.Metadata)
	return err
}

// Sort is an order of rows. The zero value is the newest first. Rows that are equal in
// it are ordered by their ids, in the same direction.
type Sort struct {
	By        SortKey
	Ascending bool
}

// SortKey is what rows are ordered by.
type SortKey string

// The sort keys.
const (
	ByCreated  SortKey = "" // when they were created
	ByLastUsed SortKey = "last_used"
	ByTokens   SortKey = "tokens" // in the context at the last report
	BySpend    SortKey = "spend"
	ByName     SortKey = "name" // ASCII letters in either case
)

// SortKeys lists the sort keys.
func SortKeys() []SortKey { return []SortKey{ByCreated, ByLastUsed, ByTokens, BySpend, ByName} }

// Sizes of the pages of List.
const (
	DefaultPage = 50
	MaxPage     = 500
	// MaxScanned is how many rows are compared with Text and Name for one page, which no
	// index finds: 10 000 take some milliseconds. A page for which that was not enough has
	// fewer rows than the limit, or none, and next all the same.
	MaxScanned = 10_000
)
