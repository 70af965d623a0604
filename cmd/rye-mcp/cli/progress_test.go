package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines passes on each write.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// The line is drawn over itself, tells what was said last and is gone in the
// end.
func TestProgressDraws(t *testing.T) {
	t.Parallel()
	out, ticks := make(lines), make(chan time.Time)
	p := &progress{out: out, stop: make(chan struct{}), done: make(chan struct{}), what: "waiting"}
	go func() {
		defer close(p.done)
		p.draw(ticks, 12)
	}()
	if first := <-out; !strings.HasPrefix(first, eraseLine) || !strings.HasSuffix(first, " waiting") {
		t.Errorf("first %q", first)
	}
	p.say("%d of 2 ended\n\x1b[2J", 1)
	ticks <- time.Time{}
	if second := <-out; !strings.HasSuffix(second, " 1 of 2 e…") {
		t.Errorf("second %q", second)
	}
	var group sync.WaitGroup
	group.Go(p.end)
	if last := <-out; last != eraseLine {
		t.Errorf("last %q", last)
	}
	group.Wait()
}

// Where there is no terminal nothing is drawn.
func TestProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := startProgress(System{Stderr: &out}, "waiting")
	p.say("still")
	p.end()
	if out.Len() > 0 {
		t.Errorf("drawn: %q", out.String())
	}
}

// Work that is over soon is not told.
func TestProgressOfShortWork(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	first := make(chan time.Time)
	p := &progress{out: &out, stop: make(chan struct{}), done: make(chan struct{})}
	go p.run(first, 80)
	p.end()
	if out.Len() > 0 {
		t.Errorf("drawn: %q", out.String())
	}
}
