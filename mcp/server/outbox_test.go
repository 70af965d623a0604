package server

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// Nothing is lost, doubled or torn, whether the writer is ahead or behind.
func TestOutboxKeepsOrder(t *testing.T) {
	t.Parallel()
	const senders, messages = 8, 2000
	r, w := io.Pipe()
	o := newOutbox()
	go o.run(w)
	var sent sync.WaitGroup
	for s := range senders {
		sent.Go(func() {
			for i := range messages {
				o.put(fmt.Appendf(nil, "%d %d %s\n", s, i, strings.Repeat("x", i%50)))
			}
		})
	}
	go func() {
		sent.Wait()
		o.close()
		<-o.done
		_ = w.Close()
	}()

	next := make([]int, senders)
	for _, l := range readLines(t, r, maxLine) {
		var s, i int
		if _, err := fmt.Sscan(string(l.data), &s, &i); err != nil {
			t.Fatalf("%q: %v", l.data, err)
		}
		if i != next[s] || len(l.data) != len(fmt.Sprint(s, i))+1+i%50 {
			t.Fatalf("%q where message %d of sender %d was due", l.data, next[s], s)
		}
		next[s]++
	}
	for s, n := range next {
		if n != messages {
			t.Errorf("%d messages of sender %d, want %d", n, s, messages)
		}
	}
	o.put([]byte("late\n")) // dropped: nobody is left to read it
	if o.full() || len(o.pending) != 0 {
		t.Error("a closed outbox keeps messages")
	}
}

func TestOutboxStopsAtFailedWrite(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	_ = r.Close()
	o := newOutbox()
	go o.run(w)
	o.put([]byte("x\n"))
	<-o.done
	if o.err == nil {
		t.Error("no error")
	}
	o.put([]byte("y\n"))
	o.close()
}

// A notice that says no more when it is said twice is queued once until it is read, in its place
// among the rest.
func TestNotesAreSaidOnce(t *testing.T) {
	t.Parallel()
	box := newOutbox()
	box.note([]byte("a changed\n"))
	box.put([]byte("answer\n"))
	box.note([]byte("b changed\n"))
	box.note([]byte("a changed\n"))
	first, _ := box.take(nil)
	box.note([]byte("a changed\n"))
	second, _ := box.take(nil)
	if string(first) != "a changed\nanswer\nb changed\n" || string(second) != "a changed\n" {
		t.Errorf("read %q, then %q", first, second)
	}
	box.close()
	box.note([]byte("late\n"))
	if rest, closed := box.take(nil); !closed || len(rest) > 0 {
		t.Errorf("%q was queued after the end", rest)
	}
}
