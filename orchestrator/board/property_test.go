package board_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestPatches: the patches put one after the other are the board that a server shows which
// has just been started, whatever comes to pass, and whenever somebody looks.
func TestPatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "board") //nolint:usetesting // one for each check
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of a test
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, closed := openScene(ctx, t, dir)
		defer closed()
		s.ended = store.EndedMost{Any: rapid.IntRange(1, 5).Draw(t, "ended"), Roots: 2}
		w := &world{scene: s, faces: []*shown{s.face(s.keeper()), s.face(s.keeper())}}
		w.faces = append(w.faces, s.face(w.faces[0].keeper)) // two show the same
		t.Repeat(map[string]func(*rapid.T){
			"start":    w.start,
			"work":     w.work,
			"end":      w.end,
			"continue": w.resume,
			"hand":     w.handOver,
			"set":      w.set,
			"entry":    w.entry,
			"ask":      w.ask,
			"label":    w.label,
			"delete":   w.delete,
			"steer":    w.steer,
			"clock": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(t, "seconds")) * time.Second)
			},
			"look": func(t *rapid.T) { rapid.SampledFrom(w.faces).Draw(t, "face").look() },
			"restart": func(t *rapid.T) { // versions of the one before are not known
				f := rapid.SampledFrom(w.faces).Draw(t, "face")
				f.keeper = s.keeper()
				if b := f.look(); !b.Whole {
					t.Fatal("a keeper knows the version of another")
				}
			},
		})
		s.face(s.keeper()).look() // settles who has died
		for _, f := range w.faces {
			f.look()
			f.wantWhole()
		}
	})
}

// world is what comes to pass.
type world struct {
	*scene
	faces []*shown
	names int
}

// rows are the threads in some states; one of them is drawn.
func (w *world) pick(t *rapid.T, want func(thread.Record) bool) (thread.Record, bool) {
	var found []thread.Record
	w.noError(store.EachRow(w.ctx, w.store, nil, func(rec thread.Record) error {
		if want(rec) {
			found = append(found, rec)
		}
		return nil
	}))
	if len(found) == 0 {
		return thread.Record{}, false
	}
	return found[rapid.IntRange(0, len(found)-1).Draw(t, "thread")], true
}

func works(rec thread.Record) bool {
	return rec.Status == thread.Running && rec.Kind == thread.KindDirective && rec.CancelRequestedAt.IsZero()
}

func hasEnded(rec thread.Record) bool {
	return rec.Status.Terminal() && rec.Kind == thread.KindDirective && rec.ContinuationThreadID == ""
}

func (w *world) start(t *rapid.T) {
	parent, found := w.pick(t, works)
	if !found || rapid.Bool().Draw(t, "root") {
		parent.ThreadID = ""
	}
	w.scene.start("work", parent.ThreadID)
}

func (w *world) work(t *rapid.T) {
	if rec, found := w.pick(t, works); found {
		w.spend(rec.ThreadID, rec.Cost.Turns+1)
	}
}

func (w *world) end(t *rapid.T) {
	rec, found := w.pick(t, func(rec thread.Record) bool {
		return works(rec) || rec.Kind == thread.KindSet && rec.Status == thread.Running
	})
	if !found {
		return
	}
	o := thread.Outcome{State: rapid.SampledFrom([]thread.State{thread.Completed, thread.Error, thread.Cancelled}).Draw(t, "state")}
	if o.State != thread.Completed {
		o.Error = &thread.Problem{Code: "x", Message: "it went wrong"}
	}
	w.scene.end(rec.ThreadID, o)
}

func (w *world) resume(t *rapid.T) {
	rec, found := w.pick(t, hasEnded)
	if !found {
		return
	}
	n := store.NewThread{Directive: rec.Directive, ContinuationOf: rec.ThreadID}
	if parent, err := w.store.Get(w.ctx, rec.ParentID); err == nil && parent.Status == thread.Running && parent.Kind == thread.KindDirective {
		n.ParentID = rec.ParentID
	}
	switch next := w.register(n); rapid.IntRange(0, 3).Draw(t, "how far") {
	case 0: // the process that resumes it dies
	case 1:
		w.noError(w.store.Link(w.ctx, rec.ThreadID, next.ThreadID, w.now))
	default:
		w.noError(w.store.Link(w.ctx, rec.ThreadID, next.ThreadID, w.now))
		w.claim(next.ThreadID)
	}
}

func (w *world) handOver(t *rapid.T) {
	rec, found := w.pick(t, works)
	if !found {
		return
	}
	next := w.registerOnly(store.NewThread{Directive: rec.Directive, ContinuationOf: rec.ThreadID, Handoff: true})
	if b, err := w.store.Budget(w.ctx, rec.ThreadID); err == nil && b.Active {
		_, err := w.any().HandOver(w.ctx, rec.ThreadID, next, w.now)
		w.noError(err)
	}
	change, err := store.Finished(rec.ThreadID, thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: next}}, nil, w.now)
	w.noError(err)
	_, err = w.any().Apply(w.ctx, change)
	w.noError(err)
	w.claim(next)
}

func (w *world) set(t *rapid.T) {
	parent, found := w.pick(t, works)
	if !found || rapid.Bool().Draw(t, "root") {
		parent.ThreadID = ""
	}
	rec := w.register(store.NewThread{Kind: thread.KindSet, Directive: "map", ParentID: parent.ThreadID})
	n := store.NewSet{Scope: "s", Content: "c", Concurrency: 2}
	for i := range rapid.IntRange(1, 4).Draw(t, "items") {
		n.Entries = append(n.Entries, store.NewEntry{Key: fmt.Sprint("k", i), Inputs: json.RawMessage(`{}`)})
	}
	_, err := w.store.OpenSet(w.ctx, rec.ThreadID, rec.Run, n, w.now)
	w.noError(err)
}

// entry starts, or refuses, the next entry of a set.
func (w *world) entry(t *rapid.T) {
	set, found := w.pick(t, func(rec thread.Record) bool { return rec.Kind == thread.KindSet && rec.Status == thread.Running })
	if !found {
		return
	}
	stands, err := w.store.Set(w.ctx, set.ThreadID)
	w.noError(err)
	e, waits, err := w.store.NextEntry(w.ctx, set.ThreadID)
	w.noError(err)
	switch {
	case !waits || stands.Working >= stands.Concurrency:
	case rapid.IntRange(0, 3).Draw(t, "refused") == 0:
		w.noError(w.store.RefuseEntry(w.ctx, set.ThreadID, e.Position, thread.Problem{Code: "no", Message: "no"}, w.now))
	default:
		w.begin(store.NewThread{Directive: "entry", ParentID: set.ThreadID, Entry: e.Position + 1, EntryKey: e.Key})
	}
}

func (w *world) ask(t *rapid.T) {
	open, err := w.store.Questions(w.ctx, store.QuestionFilter{Open: true})
	w.noError(err)
	if len(open) > 0 && rapid.Bool().Draw(t, "answered") {
		w.answer(rapid.SampledFrom(open).Draw(t, "question").ID)
		return
	}
	if rec, found := w.pick(t, works); found {
		w.scene.ask(rec.ThreadID)
	}
}

func (w *world) label(t *rapid.T) {
	if rec, found := w.pick(t, func(thread.Record) bool { return true }); found {
		w.names++
		_, err := w.store.Label(w.ctx, rec.ThreadID, store.LabelChange{Name: fmt.Sprint("name ", w.names)}, w.now)
		w.noError(err)
	}
}

// delete deletes the whole tree of a root that has ended, where all of it has.
func (w *world) delete(t *rapid.T) {
	rec, found := w.pick(t, func(rec thread.Record) bool {
		return rec.ParentID == "" && rec.Status.Terminal() && rec.ContinuationOf == ""
	})
	if !found {
		return
	}
	ids := []thread.ID{rec.ThreadID}
	below, err := w.store.Descendants(w.ctx, rec.ThreadID)
	w.noError(err)
	for _, b := range below {
		ids = append(ids, b.ThreadID)
	}
	refused, err := w.store.Delete(w.ctx, [][]thread.ID{ids}, w.now)
	w.noError(err)
	if refused[0] == nil {
		w.noError(w.store.ForgetBudgets(w.ctx, ids, w.now))
	}
}

func (w *world) steer(t *rapid.T) {
	if rec, found := w.pick(t, works); found {
		w.names++
		_, err := w.store.Post(w.ctx, thread.Message{
			ID: fmt.Sprint("m-", w.names), Kind: thread.Steer, Reader: rec.ThreadID, From: thread.Sender{Kind: thread.ByPerson}, Text: "go on", At: w.now,
		}, store.NoteBound{})
		w.noError(err)
	}
}
