package view

import (
	"fmt"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestTimelinesKept holds that what is remembered of timelines is bounded by their number
// and by their spans, and that those stay which were asked for last.
func TestTimelinesKept(t *testing.T) {
	t.Parallel()
	var all timelines
	id := func(i int) thread.ID { return thread.ID(fmt.Sprintf("t-%d", i)) }
	for i := range 2 * maxTimelines {
		all.at(id(0)) // again and again
		all.counted(id(i), all.at(id(i)), 10)
	}
	if len(all.kept) != maxTimelines || all.kept[id(0)] == nil || all.kept[id(1)] != nil || all.spans != 10*maxTimelines {
		t.Errorf("%d are kept, of %d spans", len(all.kept), all.spans)
	}
	for i := range 40 {
		all.counted(id(i), all.at(id(i)), 4000)
	}
	if all.spans > keptSpans+4000 || len(all.kept) > keptSpans/4000+1 {
		t.Errorf("%d are kept, of %d spans", len(all.kept), all.spans)
	}
	gone := &keptTimeline{}
	all.counted("nobody", gone, 5)
	if gone.spans != 0 {
		t.Error("what is not kept any more was counted")
	}
}
