package control

import (
	"context"
	"fmt"
	"maps"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// suspensions ends a wait in which nothing goes on: for twice a second apart every
// pending thread is suspended. The caller is told so once, and as often as it asks for
// no time of its own.
type suspensions struct {
	*Controller
	request WaitRequest
	before  map[thread.ID]int
}

func (s *suspensions) over(rows map[thread.ID]thread.Record) bool {
	if s.request.Caller == "" && s.request.Parent == "" {
		return false // it waits until the end, and has nobody to tell
	}
	now := s.View.Suspended(rows)
	again := len(now) > 0 && maps.Equal(now, s.before)
	s.before = now
	for _, rec := range rows {
		if _, stuck := now[rec.ThreadID]; !again || !stuck && !rec.Status.Terminal() {
			return false
		}
	}
	news := false
	for id, pid := range now {
		_, told := s.told.LoadOrStore(fmt.Sprint(s.request.Caller, s.request.Parent, " suspended ", id, pid), true)
		news = news || !told
	}
	return news || s.request.Caller != "" && !s.request.Patient
}

// eachSecond is what a wait does once a second, and tells whether it is over because
// nothing goes on.
func (c *Controller) eachSecond(
	ctx context.Context, req WaitRequest, rows map[thread.ID]thread.Record, waiting []view.Waiting, stuck *suspensions,
) bool {
	if req.Progress != nil {
		req.Progress(c.progress(ctx, rows, waiting))
	}
	return stuck.over(rows)
}
