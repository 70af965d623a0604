package recovery

import (
	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Report says what was done about dead threads.
type Report struct {
	Looked        int         // threads looked at
	Died          []thread.ID // their process was gone; settled
	HalfMade      []thread.ID // their start was cut short before they were in the queue; settled
	Cancelled     []thread.ID // asked to stop while they were queued; settled
	NotHandedOver []thread.ID // were to continue a thread that did not hand over to them; settled
	Returned      []thread.ID // had a slot and never a process; back in the queue
	Stopped       []thread.ID // children of dead threads, stopped by the policy of the project
	Completed     []thread.ID // had ended by their row only; their files say so now
}

// Settled counts the threads that were given an end.
func (r *Report) Settled() int {
	return len(r.Died) + len(r.HalfMade) + len(r.Cancelled) + len(r.NotHandedOver)
}

// empty reports whether nothing was done.
func (r *Report) empty() bool {
	return r.Settled()+len(r.Returned)+len(r.Stopped)+len(r.Completed) == 0
}

// ended files a thread that was just settled under why, by its row before and
// after.
func (r *Report) ended(before, after thread.Record) {
	switch {
	case after.Outcome != nil && after.Outcome.Error != nil && after.Outcome.Error.Code == CodeNotHandedOver:
		r.NotHandedOver = append(r.NotHandedOver, before.ThreadID)
	case before.Queued():
		r.Cancelled = append(r.Cancelled, before.ThreadID)
	case before.Status == thread.Created && before.QueuedAt.IsZero():
		r.HalfMade = append(r.HalfMade, before.ThreadID)
	default:
		r.Died = append(r.Died, before.ThreadID)
	}
}

// MarshalZerologObject writes what was done, and nothing about what was not.
func (r *Report) MarshalZerologObject(e *zerolog.Event) {
	e.Int("looked", r.Looked)
	for _, kind := range []struct {
		name string
		ids  []thread.ID
	}{
		{"died", r.Died}, {"half_made", r.HalfMade}, {"cancelled", r.Cancelled}, {"not_handed_over", r.NotHandedOver},
		{"returned", r.Returned}, {"stopped", r.Stopped}, {"completed", r.Completed},
	} {
		if len(kind.ids) > 0 {
			e.Int(kind.name, len(kind.ids)).Interface(kind.name+"_ids", shown(kind.ids))
		}
	}
}

// shown keeps a line of a log short.
func shown(ids []thread.ID) []thread.ID {
	const most = 20
	return ids[:min(len(ids), most)]
}
