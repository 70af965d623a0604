package view

import (
	"context"
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

// TestNoWorkerNext: whoever waits for threads is told of the one that no worker takes, and of
// none that is not queued.
func TestNoWorkerNext(t *testing.T) {
	t.Parallel()
	queued := thread.Record{Status: thread.Created, QueuedAt: time.Unix(1, 0)}
	for name, c := range map[string]struct {
		fleet threads.Fleet
		rec   thread.Record
		want  string
	}{
		"on one machine":      {nil, queued, ""},
		"a worker takes it":   {fleetOf{}, queued, ""},
		"none takes it":       {fleetOf{why: "no worker has the key"}, queued, "thread b-1 is queued: no worker has the key. Next: " + nextInQueue},
		"none, but it runs":   {fleetOf{why: "no worker has the key"}, thread.Record{Status: thread.Running}, ""},
		"none, but it's over": {fleetOf{why: "no worker has the key"}, thread.Record{Status: thread.Completed}, ""},
	} {
		v := &View{Threads: &threads.Threads{Deps: threads.Deps{Fleet: c.fleet}}}
		rows := map[thread.ID]thread.Record{"a-1": {Status: thread.Running}, "b-1": c.rec}
		if got := v.NoWorkerNext(t.Context(), rows); got != c.want {
			t.Errorf("%s it says %q, want %q", name, got, c.want)
		}
	}
}
