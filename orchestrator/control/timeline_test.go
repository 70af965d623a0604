package control

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestTimelines holds that what a tree of threads did is told on one axis, that a thread
// that works is told of further, and that the spend of all comes to that of the budget.
func TestTimelines(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("work", "")
	s.order(root, "spend 7")
	before, err := s.c.View.Timeline(s.ctx, root)
	s.noError(err)
	child := s.start("idle", root)
	s.order(child, "spend 5", "complete")
	during, err := s.c.View.Timelines(s.ctx, root)
	s.noError(err)
	s.order(root, "complete")
	after, err := s.c.View.Timelines(s.ctx, root)
	s.noError(err)

	if before.Ended != nil || during.Ended != nil || len(during.Lanes) != 2 || during.Lanes[1].Ended == nil || after.Ended == nil {
		s.Errorf("ended %v, %v, %v; %d lanes", before.Ended, during.Ended, after.Ended, len(during.Lanes))
	}
	lanes := after.Lanes
	if len(lanes) != 2 || lanes[0].ThreadID != root || lanes[1].ThreadID != child || lanes[1].Depth != 1 ||
		lanes[1].Parent != root || lanes[1].Directive != "idle" || lanes[1].Status != thread.Completed {
		s.Fatalf("lanes: %+v", lanes)
	}
	for _, l := range lanes {
		if last := l.Spans[len(l.Spans)-1]; last.Kind != timeline.End || last.Name != string(thread.Completed) {
			s.Errorf("the last span of %s is %+v", l.ThreadID, last)
		}
	}
	spend, err := s.c.View.Spend(s.ctx, root)
	s.noError(err)
	if own, tree := spend.Own, spend.Tree; len(own) == 0 || own[len(own)-1].Spend != 7 || tree[len(tree)-1].Spend != 12 || spend.Threads != 2 {
		s.Errorf("spend: %+v", spend)
	}
	if spend.Limit == nil || *spend.Limit <= 12 {
		s.Errorf("the limit is %v", spend.Limit)
	}
	if _, err := s.c.View.Timeline(s.ctx, "work/nobody"); err == nil || tool.AsFault(err).Code != tool.CodeNotFound || !strings.Contains(err.Error(), "nobody") {
		s.Errorf("a thread that there is not: %v", err)
	}
}
