package control

import (
	"strconv"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// BenchmarkStart is the time until a background start has answered. The
// processes it starts compete with it.
func BenchmarkStart(b *testing.B) {
	s := newScene(b)
	s.c.Queue.Launcher.(*spawn.Launcher).Environ = func([]string) ([]string, []string) { return nil, nil } // each completes at once
	var ids []thread.ID
	for b.Loop() {
		started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work"})
		s.noError(err)
		ids = append(ids, started.ThreadID)
	}
	if r := s.wait(s.c, WaitAll, ids...); !r.Success {
		b.Errorf("not all have completed; pending are %v", r.Pending)
	}
}

// BenchmarkWakeUp is the time from the commit that ends a thread, in its own
// process, until a wait in this one has returned with the row. Beside it stands
// what the system needs to carry a line from that process to this one over a
// socket, and how many times as long the wait takes.
func BenchmarkWakeUp(b *testing.B) {
	const pings = 20
	s := newScene(b)
	var wake, ping time.Duration
	ended := 0
	for b.Loop() {
		id := s.start("work", "")
		p := s.puppet(id)
		for range pings {
			s.order(id, "ping")
			ping += p.since(s) / pings
		}
		returned := make(chan time.Time, 1)
		go func() {
			s.wait(s.c, WaitAll, id)
			returned <- time.Now()
		}()
		s.order(id, "complete")
		committed := p.said(s)
		wake += (<-returned).Sub(committed)
		ended++
	}
	n := time.Duration(ended)
	b.ReportMetric(0, "ns/op") // the whole life of a thread, which is not what is measured
	b.ReportMetric(float64((wake / n).Microseconds()), "µs-wake")
	b.ReportMetric(float64((ping / n).Microseconds()), "µs-ping")
	b.ReportMetric(float64(wake)/float64(ping), "wake/ping")
}

// said is the time in the last line of a puppet.
func (p *player) said(s *scene) time.Time {
	s.Helper()
	ns, err := strconv.ParseInt(p.lines.Text(), 10, 64)
	s.noError(err)
	return time.Unix(0, ns)
}

func (p *player) since(s *scene) time.Duration { return time.Since(p.said(s)) }

// BenchmarkStatus is one look at a running thread.
func BenchmarkStatus(b *testing.B) {
	s := newScene(b)
	id := s.start("idle", "")
	s.order(id, "spend 1")
	for b.Loop() {
		if status, err := s.c.View.Status(s.ctx, id); err != nil || status.Limits == nil {
			b.Fatalf("status %+v, %v", status, err)
		}
	}
}
