package server

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/mcp"
)

// A worker pool lets nobody wait for another, keeps a few goroutines, and ends those.
func TestWorkerPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newWorkerPool()
		for range 3 { // the later times by those that stayed
			var all sync.WaitGroup
			all.Add(2 * maxWaiting)
			for range 2 * maxWaiting {
				c.run(func() {
					all.Done()
					all.Wait() // for the others, who must have begun
				})
			}
			synctest.Wait()
			if got := len(c.waiting); got != maxWaiting {
				t.Errorf("%d goroutines wait for work, want %d", got, maxWaiting)
			}
		}
		close(c.stop)
	})
}

// However many clients have a session, only a few goroutines wait for their next
// calls. It does not run in parallel, as it counts goroutines.
func TestClientsShareWorkers(t *testing.T) {
	w := newWeb(New(Options{}), HTTPOptions{})
	for range 4 * maxWaiting {
		c, refusal := w.open(t.Context(), false)
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		out := newOutbox()
		c.conn.receive(t.Context(), message{kind: kindRequest, id: requestID{raw: []byte("1"), key: "1"}, method: mcp.MethodPing}, out, true)
		for closed := false; !closed; {
			<-out.wake
			_, closed = out.take(nil)
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if got := strings.Count(string(stacks), "(*workerPool).work("); got > 2*maxWaiting {
		t.Errorf("%d goroutines are kept for %d clients that call nothing", got, 4*maxWaiting)
	}
	w.close(t.Context(), ErrClientGone)
}
