package tidy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

const day = 24 * time.Hour

// sweep is one that is due.
func (s *scene) sweep() (did string) {
	s.Helper()
	list, done, err := s.t.Sweep(s.ctx)
	s.noError(err)
	if !done {
		s.Error("the sweep was not done")
	}
	return strings.Join(list, "; ")
}

func (s *scene) keepFor(ttl time.Duration) {
	s.t.Schedule = func() (tidy.Schedule, error) { return tidy.Schedule{TTL: ttl, Interval: time.Hour}, nil }
}

// pass lets time go by, with a sweep every hour as a server does.
func (s *scene) pass(d time.Duration) {
	s.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(time.Hour)
		s.sweep()
	}
}

// TestTTL: a thread that has ended goes when it was not used for so long, and not before; one
// that lives, asks, or has anything alive in its chain, above or below it, stays.
func TestTTL(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	living := s.running("living", "")
	below := s.ended("below", living)
	top := s.running("top", "")
	asking := s.running("asking", top)
	s.end(top, thread.Completed, 1)
	first := s.ended("chain", "")
	second := s.begin(store.NewThread{Directive: "chain", ContinuationOf: first})
	old := s.ended("old", "")
	s.pass(2 * time.Hour) // without a TTL nothing goes
	s.wantWhole(old)
	s.keepFor(2 * day)
	s.pass(45 * time.Hour)
	s.wantWhole(old)
	used := s.ended("used", "")
	s.pass(2 * time.Hour)
	s.wantGone(old)
	s.wantWhole(used, below, top, first)
	for _, id := range []thread.ID{living, asking, second} {
		if rec, err := s.store.Get(s.ctx, id); err != nil || rec.Status != thread.Running {
			t.Errorf("%s: %v, %v", id, rec.Status, err)
		}
	}
}

// TestClockJumps: the clock is years ahead for some hours. Nothing expires, whether
// threads begin meanwhile or not; when it is right again all goes on as before.
func TestClockJumps(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.keepFor(30 * day)
	old := s.ended("old", "")
	s.pass(time.Hour)
	right := s.now
	s.now = s.now.AddDate(7, 0, 0)
	s.sweep()
	s.wantWhole(old)
	new := s.ended("new", "")
	s.pass(5 * time.Hour)
	s.wantWhole(old, new)
	s.now = right.Add(6 * time.Hour)
	s.pass(2 * time.Hour)
	s.wantWhole(old, new)
	s.pass(30 * day)
	s.wantGone(old)
	s.wantWhole(new) // it was used in a time that has not come
}

// TestSweepOnce: of several servers one sweeps, once an interval.
func TestSweepOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.ended("one", "")
	ran := 0
	failing := errors.New("it does not work")
	s.t.Jobs = []tidy.Job{
		{Name: "first", Run: func(ctx) (string, error) { return "", failing }},
		{Name: "second", Run: func(ctx) (string, error) { ran++; return "did it", nil }},
	}
	did, done, err := s.t.Sweep(s.ctx)
	if !done || !errors.Is(err, failing) || len(did) != 1 || did[0] != "second: did it" || ran != 1 {
		t.Errorf("did %q, %t, %v", did, done, err)
	}
	other := openScene(t, s.project)
	if _, done, err := other.t.Sweep(s.ctx); done || err != nil {
		t.Errorf("another server, at once: %t, %v", done, err)
	}
	hold, err := s.t.Threads.Life.Lease("sweep")
	s.noError(err)
	s.now = s.now.Add(2 * time.Hour)
	if _, done, err := s.t.Sweep(s.ctx); done || err != nil {
		t.Errorf("while another is at it: %t, %v", done, err)
	}
	s.noError(hold.Release())
	if _, done, _ := s.t.Sweep(s.ctx); !done || ran != 2 {
		t.Errorf("an hour later: %t, %d", done, ran)
	}
}

// TestRun goes on at once with what a crash has cut short, sweeps after each interval, and
// ends when it is told to.
func TestRun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cut := s.ended("cut", "")
	s.dieAt(cut, tidy.CrashIntended, "delete")
	s.t.Schedule = func() (tidy.Schedule, error) { return tidy.Schedule{Interval: time.Nanosecond}, nil }
	swept := make(chan struct{})
	s.t.Jobs = []tidy.Job{{Name: "tell", Run: func(ctx ctx) (string, error) {
		select {
		case swept <- struct{}{}:
		case <-ctx.Done():
		}
		return "", nil
	}}}
	running, stop := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.t.Run(running)
	}()
	for range 3 {
		<-swept
	}
	stop()
	<-ended
	s.wantGone(cut)
}

// TestSweepTellsOfBelongings: the belongings that go with expired threads are told, summed up.
func TestSweepTellsOfBelongings(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.t.Belongings = append(s.t.Belongings, s.notes(nil))
	s.ended("one", "")
	s.ended("two", "")
	s.keepFor(day)
	s.sweep()
	var told []string
	for range 40 {
		s.now = s.now.Add(time.Hour)
		if did := s.sweep(); did != "" {
			told = append(told, did)
		}
	}
	if got := strings.Join(told, "; "); !strings.Contains(got, "ttl: deleted 2 threads, 6 notes") {
		t.Errorf("%q", got)
	}
}

// TestSweepRefusedMeanwhile: a thread that somebody goes on with while a sweep looks is not told
// as deleted, nor what would have gone with it.
func TestSweepRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.t.Belongings = append(s.t.Belongings, s.notes(nil))
	s.ended("goes", "")
	s.ended("goes", "")
	stays := s.ended("stays", "")
	s.keepFor(day)
	s.goesOnMeanwhile(stays)
	s.sweep()
	var told string
	for range 40 {
		s.now = s.now.Add(time.Hour)
		told += s.sweep()
	}
	if told != "ttl: deleted 2 threads, 6 notes" {
		t.Errorf("%q", told)
	}
	s.wantWhole(stays)
}
