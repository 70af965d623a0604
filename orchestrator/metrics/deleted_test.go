package metrics

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestDeletedBetweenScrapes: a thread that comes, ends and is deleted between two scrapes
// counts, once, and so does the end of one that was seen at work. Nothing that was counted
// before its deletion is counted again.
func TestDeletedBetweenScrapes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	done := thread.Outcome{State: thread.Completed}
	works, counted := h.start("work", "fake/m"), h.start("work", "fake/m")
	h.end(counted, done, nil)
	h.scrape()
	h.now = h.now.Add(time.Hour) // it is remembered no longer
	h.start("other", "fake/m")
	h.scrape()
	h.scrape()
	h.end(works, done, nil)
	comes, open := h.start("comes", "fake/m"), h.start("open", "fake/m")
	h.end(comes, done, nil)
	h.end(open, thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x"}}, &thread.Cost{Turns: 3})
	h.remove(works, counted, comes, open)
	h.must(h.EndDeletions(h.Context(), []thread.ID{works, counted, comes}))
	ended := func(directive, state string) string {
		return fmt.Sprintf(`rye_threads_ended_total{project="/p",kind="directive",directive=%q,state=%q}`, directive, state)
	}
	started := func(directive string) string {
		return fmt.Sprintf(`rye_threads_started_total{project="/p",kind="directive",directive=%q}`, directive)
	}
	want := map[string]string{
		started("work"): "2", ended("work", "completed"): "1", ended("work", "deleted"): "1",
		started("comes"): "1", ended("comes", "completed"): "", ended("comes", "deleted"): "1",
		started("open"): "1", ended("open", "error"): "1", ended("open", "deleted"): "", `rye_turns_total{project="/p",directive="open"}`: "3",
	}
	h.want(h.scrape(), want)
	h.must(h.EndDeletions(h.Context(), []thread.ID{open}))
	h.want(h.scrape(), want)
}

// remove deletes threads.
func (h *house) remove(ids ...thread.ID) {
	h.Helper()
	for _, id := range ids {
		refused, err := h.Delete(h.Context(), [][]thread.ID{{id}}, h.now)
		h.must(errors.Join(append(refused, err)...))
	}
}
