package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

const d1 thread.ID = "team/review-1"

// grow has a thread go on: step 0 is its creation, the last one its deletion.
func (w *world) grow(step int) {
	switch step {
	case 0:
		w.is(thread.Record{ThreadID: d1, Status: thread.Created, Name: "Review"})
	case 1:
		w.is(thread.Record{ThreadID: d1, Status: thread.Running, Name: "Review", Model: "openai/gpt-5"})
		w.asked(d1, "look at sk-hush")
		w.answered(d1, 1, "", "c1", "c2")
	case 2:
		w.gave(d1, 1, "c1", "package a")
		w.gave(d1, 1, "c2", "package b")
		w.is(thread.Record{ThreadID: d1, Status: thread.Running, Model: "openai/gpt-5", Cost: thread.Cost{Turns: 1, Spend: 1_500_000}})
	case 3:
		w.happens(d1, thread.EventMessage, transcript.Message{Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "and b"}}})
		w.answered(d1, 2, "done")
		w.is(thread.Record{ThreadID: d1, Status: thread.Completed, Model: "openai/gpt-5", Cost: thread.Cost{Turns: 2}, CompletedAt: noon})
	case 4:
		delete(w.rows, d1)
		delete(w.transcripts, d1)
		w.deleted[d1] = true
		w.must(w.notes.Note(d1))
	}
}

// states are what is there after each step.
var states = []string{
	"", "human:look at [key] ai:(c1)(c2)", "human:look at [key] ai:(c1)(c2) tool:package a tool:package b",
	"human:look at [key] ai:(c1)(c2) tool:package a tool:package b human:and b ai:done",
}

// TestThread follows a thread from its creation to its deletion.
func TestThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for step, want := range states {
		w.grow(step)
		if sent := w.send(); sent != (Sent{Threads: 1}) {
			t.Errorf("step %d: %+v", step, sent)
		}
		if got := inWords(w.there(d1)); got != want {
			t.Errorf("step %d: %s\nwant %s", step, got, want)
		}
		if differs, err := w.mirror().Compare(t.Context()); err != nil || len(differs) > 0 {
			t.Errorf("step %d: %+v, %v", step, differs, err)
		}
	}
	want := map[string]any{
		"graph_id": "rye", "rye_place": "place", "rye_self": IDOf("place", d1).String(), "rye_thread": string(d1), "rye_project": "app",
		"rye_directive": "team/review", "rye_status": "completed", "rye_model": "openai/gpt-5", "rye_turns": 2., "rye_spend": 0., "rye_input_tokens": 0.,
		"rye_output_tokens": 0., "rye_created_at": "2026-03-04T12:00:00Z", "rye_ended_at": "2026-03-04T12:00:00Z", "rye_seq": 6.,
		"rye_name": nil, "rye_parent": nil, "rye_continues": nil, "rye_continued_by": nil, "rye_error": nil, "rye_labels": nil, "rye_pending": nil,
	}
	if got := w.there(d1).Metadata; !reflect.DeepEqual(got, want) {
		t.Errorf("metadata\n%v\nwant\n%v", got, want)
	}
	if s := w.there(d1).States; s != 3 {
		t.Errorf("the state was written %d times", s)
	}
	w.grow(4)
	w.send()
	if all := w.Threads(); len(all) > 0 {
		t.Errorf("after its deletion there is %+v", all)
	}
	if strings.Contains(w.log.String(), "warn") {
		t.Error(w.log.String())
	}
}

// TestCoalesced: of many changes the last counts, and is one thread's worth of requests.
func TestCoalesced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for step := range 4 {
		w.grow(step)
	}
	w.send()
	if got := inWords(w.there(d1)); got != states[3] || len(w.Requests()) != 3 { // create, state, patch
		t.Errorf("%s by %d requests", got, len(w.Requests()))
	}
	w.grow(4)
	w.is(thread.Record{ThreadID: "d-2", Status: thread.Created})
	delete(w.rows, "d-2") // its start has failed
	w.is(thread.Record{ThreadID: "run", Kind: thread.KindTool, Status: thread.Completed})
	w.is(thread.Record{ThreadID: "theirs", Kind: thread.KindDirective, Status: thread.Completed, Metadata: []byte(`{"imported":{"signer":"x"}}`)})
	w.send()
	if all := w.Threads(); len(all) > 0 {
		t.Errorf("there is %+v", all)
	}
}

// TestCrashWalk kills a sender at each of its steps, in each state of a thread: the next
// sender sends what is due, and nothing is there twice.
func TestCrashWalk(t *testing.T) {
	t.Parallel()
	left := Crashpoints()
	for until := range 5 {
		for n := 1; ; n++ {
			w := newWorld(t)
			if until == 4 { // it was there before
				w.grow(0)
				w.send()
			}
			for step := range until + 1 {
				w.grow(step)
			}
			reached := ""
			at := 0
			w.crashpoints = func(point thread.Crashpoint) {
				if at++; at == n {
					reached = string(point)
					panic(point)
				}
			}
			func() {
				defer func() { _ = recover() }()
				w.send()
			}()
			if reached == "" {
				break
			}
			left = slices.DeleteFunc(left, func(p thread.Crashpoint) bool { return string(p) == reached })
			w.crashpoints = nil
			w.send()
			if until == 4 {
				if all := w.Threads(); len(all) > 0 {
					t.Errorf("killed at %s: %+v is left", reached, all)
				}
				continue
			}
			if got := inWords(w.there(d1)); got != states[until] || len(w.Threads()) != 1 {
				t.Errorf("step %d, killed at %s: %s of %d threads", until, reached, got, len(w.Threads()))
			}
			if w.notes.Count() > 0 {
				t.Errorf("step %d, killed at %s: something is still due", until, reached)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("no sender was killed at %v", left)
	}
}

// TestChangedMeanwhile: a thread that goes on, or is deleted, while it is sent is due
// after it.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for step, want := range map[int]string{2: states[2], 4: "away"} {
		w := newWorld(t)
		w.grow(0)
		w.grow(1)
		done := false
		w.crashpoints = func(point thread.Crashpoint) {
			if point == CrashState && !done {
				done = true
				w.grow(step)
			}
		}
		w.send()
		got := "away"
		if all := w.Threads(); len(all) > 0 {
			got = inWords(all[0])
		}
		if got != want || w.notes.Count() > 0 {
			t.Errorf("step %d: %s, %d due", step, got, w.notes.Count())
		}
	}
}

// TestDeletedElsewhere: another machine has deleted the thread, and sent that, while this
// one sends what it was.
func TestDeletedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(1)
	w.crashpoints = func(point thread.Crashpoint) {
		if point == CrashPatched {
			delete(w.rows, d1)
			w.deleted[d1] = true
		}
	}
	w.send()
	if all := w.Threads(); len(all) > 0 {
		t.Errorf("%+v is back", all)
	}
}

// overtaken is an outbox of a machine that loses its turn while it sends.
type overtaken struct{ Notes }

func (o overtaken) Sent(ctx context.Context, id thread.ID) (mine bool, err error) {
	return false, o.Note(ctx, id)
}

// TestSentTwice: at each step of a sender another machine, which has got the turn, sends the
// same thread as it is by then. The next sender leaves what the thread is, with everything
// once.
func TestSentTwice(t *testing.T) {
	t.Parallel()
	for _, point := range []thread.Crashpoint{CrashTaken, CrashCreated, CrashState, CrashPatched} {
		for step, want := range map[int]string{2: states[2], 4: ""} {
			w := newWorld(t)
			w.grow(1)
			w.crashpoints = func(at thread.Crashpoint) {
				if at == point {
					w.crashpoints = nil
					w.grow(step)
					w.send()
				}
			}
			s := w.sender()
			s.Outbox = overtaken{s.Outbox.(Notes)}
			_, err := s.Run(t.Context())
			gone := step == 4 && errors.Is(err, langgraph.ErrNotFound) // deleted there while it is written
			if !gone && !errors.Is(err, life.ErrHeld) {
				t.Errorf("%s, step %d: %v", point, step, err)
			}
			w.send()
			got := ""
			for _, there := range w.Threads() {
				got += inWords(there)
			}
			if got != want || w.notes.Count() > 0 {
				t.Errorf("%s, step %d: %s, %d due", point, step, got, w.notes.Count())
			}
		}
	}
}

// TestLeased: where another process sends, nobody else does.
func TestLeased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(0)
	s := w.sender()
	s.Lease = func(context.Context) (life.Hold, error) { return nil, fmt.Errorf("other: %w", life.ErrHeld) }
	if _, err := s.Run(t.Context()); !errors.Is(err, life.ErrHeld) || len(w.Requests()) > 0 || w.notes.Count() != 1 {
		t.Errorf("%v", err)
	}
}

// noteAtRelease notes a thread when the lease is given back.
type noteAtRelease struct {
	free
	note func()
}

func (n noteAtRelease) Release() error { n.note(); return nil }

// TestNotedAtTheEnd: a thread that is noted while the lease is held, after the last look, is sent.
func TestNotedAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(0)
	s := w.sender()
	step := 1
	s.Lease = func(context.Context) (life.Hold, error) {
		return noteAtRelease{note: func() {
			if step < 4 {
				w.grow(step)
				step++
			}
		}}, nil
	}
	if _, err := s.Run(t.Context()); err != nil || inWords(w.there(d1)) != states[3] {
		t.Errorf("%s, %v", inWords(w.there(d1)), err)
	}
}

// TestLingers: one process sends the turns of a thread that lives, and ends after it.
func TestLingers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(0)
	step, leases := 1, 0
	w.onWait = func() {
		if step < 4 && len(w.waited)%3 == 0 {
			w.grow(step)
			step++
		}
	}
	s := w.sender()
	s.Lingers = true
	s.Lease = func(context.Context) (life.Hold, error) { leases++; return free{}, nil }
	if sent, err := s.Run(t.Context()); err != nil || sent.Threads != 4 || leases != 1 || len(w.waited) > 12 {
		t.Errorf("%+v, %v by %d leases, %d looks", sent, err, leases, len(w.waited))
	}
	w.onWait, w.waited = nil, nil
	w.is(thread.Record{ThreadID: "d-2", Status: thread.Running})
	if _, err := s.Run(t.Context()); err != nil || len(w.waited) != looks {
		t.Errorf("%v, %d looks", err, len(w.waited))
	}
}

func TestRest(t *testing.T) {
	t.Parallel()
	r := Rest{filepath.Join(t.TempDir(), "rest")}
	if !r.Over(noon) {
		t.Error("a rest before any")
	}
	for _, want := range []time.Duration{15, 30, 60, 120, 240, 300, 300} {
		if err := r.Longer(noon, "it rains"); err != nil {
			t.Fatal(err)
		}
		want *= time.Second
		if r.Over(noon.Add(want-time.Second)) || !r.Over(noon.Add(want)) {
			t.Errorf("a rest is not %s", want)
		}
		if failure, at := r.Failed(); failure != "it rains" || !at.Equal(noon) {
			t.Errorf("it failed at %s: %q", at, failure)
		}
	}
	if !r.Over(noon.Add(-time.Hour)) {
		t.Error("a clock that was set back rests for an hour")
	}
	if err := os.WriteFile(r.File, []byte("99999999999999999999"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Longer(noon, "it rains"); err != nil || !r.Over(noon.Add(longestRest)) {
		t.Error(err)
	}
	r.End()
	if failure, _ := r.Failed(); !r.Over(noon) || failure != "" {
		t.Errorf("a rest after its end, of %q", failure)
	}
}

// TestSettingsChange: the graph of the settings is that of the threads.
func TestSettingsChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(1)
	w.Graphs = []string{"rye", "agent"}
	w.send()
	s := w.sender()
	s.Graph = "agent"
	w.grow(2)
	if _, err := s.Run(t.Context()); err != nil || w.there(d1).Metadata["graph_id"] != "agent" || inWords(w.there(d1)) != states[2] {
		t.Errorf("%v, %v", w.there(d1).Metadata, err)
	}
	s.Graph = "nobody's"
	w.grow(3)
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `graph "nobody's"`) {
		t.Errorf("%v", err)
	}
}

// TestCancelled: a sender that is told to end leaves what is due to the next one, at once.
func TestCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(1)
	w.answers(1, http.StatusServiceUnavailable, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := w.sender()
	why := errors.New("the machine goes down")
	s.Wait = func(ctx context.Context, _ time.Duration) error { cancel(why); return context.Cause(ctx) }
	if _, err := s.Run(ctx); !errors.Is(err, why) || w.notes.Count() != 1 || !w.rest.Over(w.now) {
		t.Errorf("%v, %d due, rests: %v", err, w.notes.Count(), !w.rest.Over(w.now))
	}
}
