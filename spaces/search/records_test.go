package search_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
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

// spied is a source that counts how often the records of threads are listed.
type spied struct {
	*resolve.Resolver

	all int
}

func (s *spied) All(kind item.Kind) ([]resolve.Entry, error) {
	s.all++
	return s.Resolver.All(kind)
}

// TestRecordsAreNotLookedAt: a search does not look at the records of threads, neither in
// their folder nor in its index, unless it is for them.
func TestRecordsAreNotLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"project/knowledge/agent/threads/work/work-1.md": knowledge("Work", "records", "what it did"),
		"project/knowledge/agent/threads.md":             knowledge("Threads", "ours", "what somebody wrote"),
	})
	source := &spied{Resolver: resolve.New(w.roots)}
	x, err := search.Open(t.Context(), w.db, source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	for range 2 {
		if page := find(t, x, search.Query{Text: "what"}); page.Total != 1 || source.all != 0 {
			t.Errorf("%d found, records listed %d times", page.Total, source.all)
		}
		if page := find(t, x, search.Query{Text: "what", Threads: true}); page.Total != 2 || source.all == 0 {
			t.Errorf("with threads: %d found, records listed %d times", page.Total, source.all)
		}
		source.all = 0
	}
}
