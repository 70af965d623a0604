package view

import (
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var _ = []tool.Keeper{Started{}, WaitResult{}, Aggregate{}}

// WholeOf tells where the texts of the thread can be read.
func (s Started) WholeOf(place []string) (tool.Whole, bool) {
	return wholeOf(s.ThreadID, s.ResolvedThreadID, place)
}

// WholeOf tells where the texts of each thread can be read.
func (r WaitResult) WholeOf(place []string) (tool.Whole, bool) { return wholeIn(r.Results, place) }

// WholeOf tells where the texts of each thread can be read.
func (a Aggregate) WholeOf(place []string) (tool.Whole, bool) { return wholeIn(a.Results, place) }

func wholeIn(results map[thread.ID]Result, place []string) (tool.Whole, bool) {
	if len(place) < 2 || place[0] != "results" {
		return tool.Whole{}, false
	}
	id := thread.ID(place[1])
	r := results[id]
	return wholeOf(id, r.ResolvedThreadID, place[2:])
}

// wholeOf tells which part of a thread a text at a place of its result belongs to.
func wholeOf(asked, resolved thread.ID, place []string) (tool.Whole, bool) {
	w := tool.Whole{ThreadID: asked}
	if resolved != "" {
		w.ThreadID = resolved
	}
	if len(place) == 0 {
		return w, false
	}
	switch place[0] {
	case "result":
		w.Part, w.Verbatim = tool.PartResult, true
	case "data":
		w.Part, w.Verbatim = tool.PartResult, len(place) == 1
	case "outputs":
		w.Part = tool.PartOutputs
	default:
		return w, false
	}
	return w, true
}
