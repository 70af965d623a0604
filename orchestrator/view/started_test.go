package view

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// queueOf is a store of which only the queue is asked.
type queueOf struct {
	store.Store
	load store.QueueLoad
}

func (q queueOf) QueueLoad(context.Context) (store.QueueLoad, error) { return q.load, nil }

// fleetOf is a fleet of which only is asked why it takes no thread.
type fleetOf struct {
	threads.Fleet
	why string
}

func (f fleetOf) NoWorker(context.Context, thread.Record) string { return f.why }

// TestQueuedNext: a start that is queued says what it waits for, a slot or a worker, or why
// no worker comes, and what to call.
func TestQueuedNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fleet threads.Fleet
		want  string
	}{
		"on one machine":              {nil, "running: 3, as many as may at the same time (threads.max_running), queued: 2; "},
		"a worker will take it":       {fleetOf{}, "running: 3, queued for a worker: 2; "},
		"no worker has what it takes": {fleetOf{why: "no worker has the key: start one"}, "no worker has the key: start one. Next: "},
	} {
		v := &View{Threads: &threads.Threads{Deps: threads.Deps{Fleet: c.fleet, Store: queueOf{load: store.QueueLoad{Occupied: 3, Queued: 2}}}}}
		got := v.queuedNext(t.Context(), thread.Record{Status: thread.Created, QueuedAt: time.Unix(1, 0)})
		if got != c.want+nextInQueue {
			t.Errorf("%s it says\n%s", name, got)
		}
	}
	if !strings.Contains(nextInQueue, "wait_threads") || !strings.Contains(nextInQueue, "cancel_thread") {
		t.Errorf("no tool is named: %s", nextInQueue)
	}
}

// TestNoWorker: a caller that waits for threads is told of those that no worker takes, and of none
// that is not queued. Of many that are queued few are asked about.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	queued := func(id thread.ID) thread.Record {
		return thread.Record{ThreadID: id, Status: thread.Created, QueuedAt: time.Unix(1, 0)}
	}
	why := fleetOf{why: "no worker has the key"}
	for name, c := range map[string]struct {
		fleet threads.Fleet
		rec   thread.Record
		want  string
	}{
		"on one machine":      {nil, queued("b-1"), ""},
		"a worker takes it":   {fleetOf{}, queued("b-1"), ""},
		"none takes it":       {why, queued("b-1"), "thread b-1 is queued: no worker has the key. Next: " + nextInQueue},
		"of another chain":    {why, queued("b-2"), "thread b-2 is queued: no worker has the key. Next: " + nextInQueue},
		"none, but it runs":   {why, thread.Record{Status: thread.Running}, ""},
		"none, but it's over": {why, thread.Record{Status: thread.Completed}, ""},
	} {
		v := &View{Threads: &threads.Threads{Deps: threads.Deps{Fleet: c.fleet}}}
		got := v.NoWorker(t.Context(), map[thread.ID]thread.Record{"a-1": {Status: thread.Running}, "b-1": c.rec})
		if (len(got) > 0) != (c.want != "") || len(got) > 0 && NoWorkerNext(got) != c.want {
			t.Errorf("%s it says %q, want %q", name, got, c.want)
		}
	}
	many := map[thread.ID]thread.Record{}
	for i := range 3 * mostAsked {
		id := thread.ID(fmt.Sprint("c-", i))
		many[id] = queued(id)
	}
	v := &View{Threads: &threads.Threads{Deps: threads.Deps{Fleet: why}}}
	if got := v.NoWorker(t.Context(), many); len(got) != mostAsked {
		t.Errorf("of many it says %q", got)
	}
}
