package view

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Told is what an answer tells of a thread.
type Told = thread.Told

// Teller is an answer that tells how threads stand, so that nobody needs to tell it
// beside the answer.
type Teller interface{ Tells() []Told }

// ToldBy is what a result tells of threads.
func ToldBy(result any) []Told {
	if teller, ok := result.(Teller); ok {
		return teller.Tells()
	}
	return nil
}

func tells(id, resolved thread.ID, status thread.State, waiting []Waiting) []Told {
	told := []Told{{ThreadID: id, Status: status}}
	if resolved != "" {
		told = append(told, Told{ThreadID: resolved, Status: status})
	}
	for _, w := range waiting {
		told = append(told, Told{ThreadID: w.ThreadID, Asks: true})
	}
	return told
}

// Tells implements [Teller].
func (s Started) Tells() []Told { return tells(s.ThreadID, s.ResolvedThreadID, s.Status, s.Waiting) }

// Tells implements [Teller].
func (s Status) Tells() []Told { return tells(s.ThreadID, s.ResolvedThreadID, s.Status, s.Waiting) }

// Tells implements [Teller].
func (w WaitResult) Tells() []Told {
	return slices.Concat(resultsTell(w.Results), tells("", "", "", w.Waiting))
}

// Tells implements [Teller].
func (a Aggregate) Tells() []Told { return resultsTell(a.Results) }

func resultsTell(results map[thread.ID]Result) (told []Told) {
	for id, r := range results {
		told = append(told, tells(id, r.ResolvedThreadID, r.Status, nil)...)
	}
	return told
}

// Tells implements [Teller].
func (l List) Tells() (told []Told) {
	for _, t := range l.Threads {
		told = append(told, Told{ThreadID: t.ThreadID, Status: t.Status, Asks: t.Asks})
	}
	return told
}
