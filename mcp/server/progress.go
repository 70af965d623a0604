package server

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// progressInterval is the least time between two progress notifications of one
// call. More frequent reports are merged: the last one wins.
const progressInterval = 100 * time.Millisecond

const (
	// beatEvery is how often a client hears of a call whose handler reports nothing.
	// Clients break off a call of which they hear nothing for a minute.
	beatEvery = time.Second
	// beatAfter is how long a handler may report nothing before that. Those that wait
	// report each second by themselves.
	beatAfter = beatEvery + progressInterval
)

// Progress is how far a call is.
type Progress struct {
	Progress float64 // grows from report to report, in any unit
	Total    float64 // in the same unit; 0: not known
	Message  string  // for a person
}

// report tells the client how far a request is, if it asked for that: at once,
// or when the interval since the last notification is over. The last report
// always goes out before the answer; once the answer is queued, reports are
// dropped.
func (r *request) report(p Progress) {
	if !r.hearsProgress() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.said = &p
	if r.silence != nil {
		r.silence.Reset(beatAfter)
	}
	r.hold(p)
}

// hold has a report sent now, or when the pause is over. The caller holds r.mu.
func (r *request) hold(p Progress) {
	r.held = &p
	if r.pause == nil {
		r.sendHeld()
	}
}

// beat begins to tell a client that asks for progress that the call goes on while its
// handler reports nothing.
func (r *request) beat() {
	if !r.hearsProgress() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.began = time.Now()
		r.silence = time.AfterFunc(beatAfter, r.goesOn)
	}
}

// goesOn repeats the last report of a handler that has reported nothing since, or says how long
// it has been at work.
func (r *request) goesOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	now := Progress{Message: fmt.Sprintf("at work for %d s", int(time.Since(r.began).Seconds()))}
	if r.said != nil {
		now = *r.said
	}
	r.hold(now)
	r.silence.Reset(beatEvery)
}

// hearsProgress reports whether the client asks for progress, and reads where it goes.
func (r *request) hearsProgress() bool { return r.msg.token != nil && !r.out.single }

// pauseOver sends the report that came in during the pause, if any.
func (r *request) pauseOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause = nil
	if r.held != nil && !r.closed {
		r.sendHeld()
	}
}

// sendHeld queues the held report and starts the pause after it. While the
// client does not read it only starts the pause. The caller holds r.mu.
func (r *request) sendHeld() {
	if !r.out.full() {
		r.flushHeld()
	}
	r.pause = time.AfterFunc(progressInterval, r.pauseOver)
}

// flushHeld queues the held report, if there is one. The caller holds r.mu.
func (r *request) flushHeld() {
	if r.held == nil {
		return
	}
	p := *r.held
	r.held = nil
	r.last = growing(r.last, p.Progress)
	r.out.put(r.conn.server.encoded(encodeMessage("", mcp.MethodNotificationProgress, progressParams{
		Token:    r.msg.token,
		Progress: *r.last,
		Total:    finite(p.Total),
		Message:  p.Message,
	})))
}

// progressParams are the parameters of notifications/progress.
type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
	Total    float64         `json:"total,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// growing returns next, or a little more than last where next is not above it.
// The protocol wants the number to increase with every notification, and a
// heartbeat of a call that is stuck in one step has no other number to give.
func growing(last *float64, next float64) *float64 {
	next = finite(next)
	if last != nil && next <= *last {
		next = max(*last+0.001, math.Nextafter(*last, math.Inf(1)))
	}
	return &next
}

// finite replaces what JSON cannot express.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
