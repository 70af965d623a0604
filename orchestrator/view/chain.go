package view

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Chain is the answer to get_chain.
type Chain struct {
	Success          bool          `json:"success"`
	ThreadID         thread.ID     `json:"thread_id"`
	ResolvedThreadID thread.ID     `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it"`
	Length           int           `json:"chain_length"`
	Cost             thread.Cost   `json:"cost" jsonschema:"own cost of all threads of the chain"`
	TreeSpend        thread.Micros `json:"tree_spend" jsonschema:"US dollars spent by all threads of the chain and everything below them"`
	Chain            []ChainLink   `json:"chain" jsonschema:"first to newest"`
}

// ChainLink is one thread of a chain.
type ChainLink struct {
	ThreadID    thread.ID    `json:"thread_id"`
	Via         thread.Via   `json:"via,omitempty" jsonschema:"handoff or resume: how it came to continue the one before"`
	Status      thread.State `json:"status"`
	Directive   string       `json:"directive"`
	Model       string       `json:"model"`
	Cost        thread.Cost  `json:"cost" jsonschema:"its own"`
	CreatedAt   time.Time    `json:"created_at"`
	CompletedAt *time.Time   `json:"completed_at,omitempty"`
	Error       string       `json:"error,omitempty" jsonschema:"why it did not complete"`
	Warnings    []string     `json:"warnings,omitempty"`
}

// GetChain tells of all threads that do one piece of work, one after the other,
// whichever of them is named.
func (v *View) GetChain(ctx context.Context, id thread.ID) (Chain, error) {
	rows, err := v.Threads.Chain(ctx, id)
	if err != nil {
		return Chain{}, threads.Fault(err)
	}
	answer := Chain{Success: true, ThreadID: id, Length: len(rows), Chain: make([]ChainLink, len(rows))}
	if newest := rows[len(rows)-1].ThreadID; newest != id {
		answer.ResolvedThreadID = newest
	}
	for i, rec := range rows {
		answer.Chain[i] = chainLink(rec)
		if i > 0 {
			answer.Chain[i].Via = threads.ViaOf(rows[i-1], rows[i])
		}
	}
	answer.Cost = threads.CostOf(rows)
	if answer.TreeSpend, err = v.Threads.SpentBy(ctx, rows); err != nil {
		return Chain{}, threads.Fault(err)
	}
	return answer, nil
}

func chainLink(rec thread.Record) ChainLink {
	l := ChainLink{
		ThreadID: rec.ThreadID, Status: rec.Status, Directive: rec.Directive, Model: rec.Model, Cost: rec.Cost, CreatedAt: rec.CreatedAt,
	}
	if !rec.CompletedAt.IsZero() {
		l.CompletedAt = &rec.CompletedAt
	}
	if rec.Outcome != nil {
		l.Warnings = rec.Outcome.Warnings
	}
	l.Error, _ = problemOf(rec.Outcome)
	return l
}

// Ways to search.
const (
	searchText   = "text"
	searchRegexp = "regex"
)

// defaultMatches is how many places a search names that does not say.
const defaultMatches = 50

// ChainSearchInput is the input of chain_search.
type ChainSearchInput struct {
	ThreadID   thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	Query      string    `json:"query" alias:"text,pattern" minLength:"1" maxLength:"1000"`
	SearchType string    `json:"search_type,omitempty" enum:"text,regex" default:"text"`
	Limit      int       `json:"limit,omitempty" alias:"max_results" minimum:"1" maximum:"500" default:"50"`
}

// ChainMatches is the answer to chain_search.
type ChainMatches struct {
	Success   bool         `json:"success"`
	ThreadID  thread.ID    `json:"thread_id"`
	Count     int          `json:"count"`
	Truncated bool         `json:"truncated,omitempty" jsonschema:"there may be more than limit"`
	Next      string       `json:"next,omitempty" jsonschema:"what to call next"`
	Searched  []thread.ID  `json:"searched" jsonschema:"threads of the chain, first to newest"`
	Matches   []ChainMatch `json:"matches" jsonschema:"in the order in which it was written"`
}

// ChainMatch is an event in which something was found.
type ChainMatch struct {
	ThreadID  thread.ID        `json:"thread_id"`
	Line      int              `json:"line" jsonschema:"of its transcript, from 1"`
	EventType thread.EventType `json:"event_type"`
	Excerpt   string           `json:"excerpt"`
}

// ChainSearch looks for a text or a regular expression in the transcripts of all
// threads of a chain. One that has written nothing yet has nothing to be found.
func (v *View) ChainSearch(ctx context.Context, in ChainSearchInput) (ChainMatches, error) {
	pattern, err := patternOf(in)
	if err != nil {
		return ChainMatches{}, err
	}
	rows, err := v.Threads.Chain(ctx, in.ThreadID)
	if err != nil {
		return ChainMatches{}, threads.Fault(err)
	}
	most := in.Limit
	if most <= 0 {
		most = defaultMatches
	}
	found := ChainMatches{Success: true, ThreadID: in.ThreadID, Matches: []ChainMatch{}}
	for _, rec := range rows {
		found.Searched = append(found.Searched, rec.ThreadID)
		// One more than is wanted tells whether there are more.
		hits, err := transcript.Search(ctx, v.Threads.Transcript(rec.ThreadID), pattern, most+1-len(found.Matches))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ChainMatches{}, threads.Fault(err)
		}
		for _, hit := range hits {
			found.Matches = append(found.Matches, ChainMatch{rec.ThreadID, hit.Line, hit.Type, hit.Excerpt})
		}
	}
	if len(found.Matches) > most {
		found.Matches, found.Truncated = found.Matches[:most], true
		found.Next = "give a narrower query, or a larger limit"
	}
	found.Count = len(found.Matches)
	return found, nil
}

func patternOf(in ChainSearchInput) (*transcript.Pattern, error) {
	if in.SearchType != "" && in.SearchType != searchText && in.SearchType != searchRegexp {
		return nil, tool.Faultf(tool.CodeBadArguments, "search_type %q is not known; valid are %s and %s",
			in.SearchType, searchText, searchRegexp)
	}
	pattern, err := transcript.NewPattern(in.Query, in.SearchType == searchRegexp)
	if err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "query: %w", err).
			WithHint("leave search_type out to look for the text as it stands")
	}
	return pattern, nil
}
