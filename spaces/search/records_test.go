package search_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

// TestRecordsOfThreads finds a directive first whose name every record of its threads
// repeats many times, and the records only where they are asked for.
func TestRecordsOfThreads(t *testing.T) {
	t.Parallel()
	const runs = 40
	w := newWorld(t, library())
	w.write("project/directives/team/chunk.md", directive("chunk", "Parts", "Cut a text into parts", "Cut it."))
	w.write("project/directives/team/deep/other.md", directive("other", "Chunk of a chunk", "a chunk, one chunk", "chunk by chunk"))
	for i := range runs {
		w.write(fmt.Sprintf("project/knowledge/agent/threads/team/chunk/chunk-%d.md", i), knowledge("chunk", "chunk", "chunk by chunk, a chunk"))
	}
	x := w.open()
	for _, text := range []string{"chunk", "team/chunk", "Chunk", `"chunk"`, "team.chunk"} {
		page := find(t, x, search.Query{Text: text})
		if page.Results[0].ID != "team/chunk" || page.Results[0].Score != 1 || page.Total > 2 {
			t.Errorf("%s: %d in all, first %+v", text, page.Total, page.Results[0])
		}
		page = find(t, x, search.Query{Text: text, Threads: true})
		if page.Results[0].ID != "team/chunk" || page.Total < runs+1 {
			t.Errorf("%s with threads: %d in all, first %s", text, page.Total, page.Results[0].ID)
		}
	}
	for _, scope := range []string{"knowledge.agent.threads.*", "knowledge.agent.threads", "rye.search.knowledge.agent.threads.team.*", "rye.fetch.knowledge.agent.threads.team.chunk.*"} {
		if page := find(t, x, search.Query{Text: "*", Scope: scope}); page.Total != runs {
			t.Errorf("scope %s: %d, want %d", scope, page.Total, runs)
		}
	}
	for _, scope := range []string{"", "knowledge", "knowledge.*", "knowledge.agent.*"} {
		page := find(t, x, search.Query{Text: "*", Scope: scope, Limit: 100})
		if slices.ContainsFunc(page.Results, func(h search.Hit) bool { return item.IsThreadRecord(h.Type, h.ID) }) {
			t.Errorf("scope %q has records of threads", scope)
		}
	}
}
