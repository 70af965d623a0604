package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var setTests = []test{
	{"a set is opened once, with its entries", setOpened},
	{"an entry is started once, by whoever comes first", setEntryOnce},
	{"no more entries work than may", setBound},
	{"an aborted start takes no entry", setAborted},
	{"a result that is deleted before the set is open", setReusesDeleted},
	{"a refused entry waits no longer", setRefused},
	{"an entry stands as the last of its chain", setChain},
	{"what has completed is found by key, within its scope", setCompleted},
	{"the last set of a scope and content", setLast},
	{"a set counts as its children", setSpawns},
	{"entries of a root set wait in the queue as roots do", setQueue},
	{"lists leave entries out", setList},
}

// set is a running set of some items with a concurrency.
func (h *harness) set(scope, content string, concurrency int, keys ...string) thread.ID {
	h.Helper()
	id, run := h.registeredSet("")
	_, err := h.OpenSet(h.ctx, id, run, newSet(scope, content, concurrency, keys...), h.now)
	h.noError(err)
	return id
}

func (h *harness) registeredSet(parent thread.ID) (thread.ID, thread.Run) {
	h.Helper()
	n := h.newThread("map", parent)
	n.Kind, n.Run = thread.KindSet, thread.NewRun()
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	return rec.ThreadID, rec.Run
}

func newSet(scope, content string, concurrency int, keys ...string) store.NewSet {
	s := store.NewSet{Scope: scope, Content: content, Concurrency: concurrency}
	for i, key := range keys {
		s.Entries = append(s.Entries, store.NewEntry{Key: key, Inputs: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
	}
	return s
}

// startEntry starts the entry of a set at a position.
func (h *harness) startEntry(set thread.ID, position int) (thread.ID, error) {
	n := h.newThread("map", set)
	n.Entry, n.EntryKey = position+1, fmt.Sprintf("key now %d", position)
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	return rec.ThreadID, err
}

// entry starts an entry that must be startable, and its thread runs.
func (h *harness) entry(set thread.ID, position int) thread.ID {
	h.Helper()
	id, err := h.startEntry(set, position)
	h.noError(err)
	h.apply(store.Claimed(id, thread.Process{PID: 4711, Host: "host"}, h.now))
	return id
}

func (h *harness) entries(set thread.ID) []store.Entry {
	h.Helper()
	list, err := h.Entries(h.ctx, set, 0, 1000)
	h.noError(err)
	return list
}

func (h *harness) wantSet(id thread.ID, want store.Set) {
	h.Helper()
	got, err := h.Set(h.ctx, id)
	h.noError(err)
	want.ID, want.Scope, want.Content = id, got.Scope, got.Content
	if got != want {
		h.Errorf("set %+v, want %+v", got, want)
	}
}

func setOpened(h *harness) {
	id, run := h.registeredSet("")
	if _, err := h.Set(h.ctx, id); !errors.Is(err, store.ErrNoSet) {
		h.Errorf("a set that was not opened: %v", err)
	}
	done := h.inState(thread.Completed)
	s := newSet("mine", "hash", 2, "a", "b", "c")
	s.Entries[1].Done = done
	if _, err := h.OpenSet(h.ctx, id, "another run", s, h.now); !errors.Is(err, store.ErrFenced) {
		h.Errorf("opened by another run: %v", err)
	}
	rec, err := h.OpenSet(h.ctx, id, run, s, h.now)
	h.noError(err)
	if rec.Kind != thread.KindSet || rec.Status != thread.Running || rec.PID != 0 || h.get(id).Kind != thread.KindSet {
		h.Errorf("the set is a %s, %s, process %d", rec.Kind, rec.Status, rec.PID)
	}
	if _, err := h.OpenSet(h.ctx, id, run, s, h.now); !errors.Is(err, thread.ErrSettled) {
		h.Errorf("opened again: %v", err)
	}
	h.wantSet(id, store.Set{Concurrency: 2, Items: 3, Waiting: 2, Reused: 1})
	want := []store.Entry{
		{Position: 0, Key: "a"},
		{Position: 1, Key: "b", StartedAt: h.now, Reused: true, Thread: done, Last: done, Status: thread.Completed},
		{Position: 2, Key: "c"},
	}
	if got := h.entries(id); !reflect.DeepEqual(got, want) {
		h.Errorf("entries\n%+v, want\n%+v", got, want)
	}
	if page, err := h.Entries(h.ctx, id, 1, 1); err != nil || len(page) != 1 || page[0].Position != 1 {
		h.Errorf("a page: %+v (%v)", page, err)
	}
	next, waits, err := h.NextEntry(h.ctx, id)
	if h.noError(err); !waits || next.Position != 0 || string(next.Inputs) != `{"n":0}` {
		h.Errorf("next: %+v %v", next, waits)
	}
	load, err := h.QueueLoad(h.ctx)
	h.noError(err)
	working, err := h.Working(h.ctx)
	if h.noError(err); load.Sets != 1 || !slices.Equal(working, []thread.ID{id}) {
		h.Errorf("%d sets work: %v", load.Sets, working)
	}
	h.end(id, thread.Completed)
	if working, err := h.Working(h.ctx); err != nil || len(working) > 0 {
		h.Errorf("an ended set works: %v %v", working, err)
	}
	cancelled, run := h.registeredSet("")
	_, err = h.RequestCancel(h.ctx, cancelled, "", h.now)
	h.noError(err)
	if _, err := h.OpenSet(h.ctx, cancelled, run, s, h.now); !errors.Is(err, thread.ErrSettled) {
		h.Errorf("opened although it is to stop: %v", err)
	}
}

func setEntryOnce(h *harness) {
	id := h.set("", "x", 100, "a", "b")
	started := make([]thread.ID, 20)
	errs := atOnce(len(started), func(i int) (err error) {
		started[i], err = h.startEntry(id, 0)
		return err
	})
	var won thread.ID
	for i, err := range errs {
		switch {
		case err == nil && won == "":
			won = started[i]
		case err == nil || !errors.Is(err, store.ErrEntryTaken):
			h.Errorf("start %d: %s, %v", i, started[i], err)
		}
	}
	rows, _, err := h.List(h.ctx, store.Filter{ParentID: id})
	if h.noError(err); len(rows) != 1 || rows[0].ThreadID != won {
		h.Errorf("%d threads were registered", len(rows))
	}
	if e := h.entries(id)[0]; e.Thread != won || e.Key != "key now 0" || e.Status != thread.Created {
		h.Errorf("entry %+v", e)
	}
	h.wantSet(id, store.Set{Concurrency: 100, Items: 2, Waiting: 1, Working: 1})
}

func setBound(h *harness) {
	id := h.set("", "x", 2, "a", "b", "c")
	first := h.entry(id, 0)
	h.entry(id, 1)
	if _, err := h.startEntry(id, 2); !errors.Is(err, store.ErrEntryTaken) {
		h.Errorf("a third one: %v", err)
	}
	h.end(first, thread.Error)
	h.entry(id, 2)
	h.wantSet(id, store.Set{Concurrency: 2, Items: 3, Working: 2})
	if _, waits, err := h.NextEntry(h.ctx, id); waits || err != nil {
		h.Errorf("one waits still (%v)", err)
	}
}

func setAborted(h *harness) {
	id := h.set("", "x", 2, "a")
	_, err := h.RequestCancel(h.ctx, id, "", h.now)
	h.noError(err)
	if _, err := h.startEntry(id, 0); !errors.Is(err, store.ErrParentGone) {
		h.Errorf("an entry of a set that is to stop: %v", err)
	}
	if e := h.entries(id)[0]; !e.Waits() {
		h.Errorf("entry %+v", e)
	}
}

// setReusesDeleted deletes the thread whose result is used again before the set is open:
// the entry then stands as one whose thread was deleted afterwards.
func setReusesDeleted(h *harness) {
	id, run := h.registeredSet("")
	s := newSet("", "x", 1, "a", "b")
	s.Entries[0].Done = h.inState(thread.Completed)
	_, err := h.Delete(h.ctx, [][]thread.ID{{s.Entries[0].Done}}, h.now)
	h.noError(err)
	_, err = h.OpenSet(h.ctx, id, run, s, h.now)
	h.noError(err)
	if e := h.entries(id); !e[0].Deleted() || e[0].Waits() || !e[1].Waits() {
		h.Errorf("entries %+v", e)
	}
}

func setRefused(h *harness) {
	id := h.set("", "x", 2, "a", "b")
	why := thread.Problem{Code: "BAD_ARGUMENTS", Message: "no"}
	h.noError(h.RefuseEntry(h.ctx, id, 0, why, h.now))
	h.noError(h.RefuseEntry(h.ctx, id, 0, thread.Problem{Code: "another"}, h.now))
	if e := h.entries(id)[0]; e.Waits() || e.Deleted() || e.Refused == nil || *e.Refused != why {
		h.Errorf("entry %+v", e)
	}
	if _, err := h.startEntry(id, 0); !errors.Is(err, store.ErrEntryTaken) {
		h.Errorf("a refused one was started: %v", err)
	}
	started := h.entry(id, 1)
	h.noError(h.RefuseEntry(h.ctx, id, 1, why, h.now))
	if e := h.entries(id)[1]; e.Refused != nil || e.Thread != started {
		h.Errorf("a started one was refused: %+v", e)
	}
}

func setChain(h *harness) {
	id := h.set("", "x", 2, "a")
	first := h.entry(id, 0)
	next := h.successor(first, true)
	h.apply(h.continued(first, next))
	h.wantSet(id, store.Set{Concurrency: 2, Items: 1, Working: 1})
	h.apply(store.Claimed(next, thread.Process{PID: 4711, Host: "host"}, h.now))
	h.end(next, thread.Completed)
	if e := h.entries(id)[0]; e.Thread != first || e.Last != next || e.Status != thread.Completed {
		h.Errorf("entry %+v", e)
	}
	done, err := h.Completed(h.ctx, "", []string{"key now 0"})
	if h.noError(err); done["key now 0"] != first {
		h.Errorf("completed: %v", done)
	}
}

func setCompleted(h *harness) {
	id := h.set("mine", "x", 9, "a", "b", "c")
	h.end(h.entry(id, 0), thread.Completed)
	h.end(h.entry(id, 1), thread.Error)
	h.entry(id, 2)
	again := h.set("mine", "y", 9, "a")
	newest := h.entry(again, 0)
	h.end(newest, thread.Completed)
	keys := []string{"key now 0", "key now 1", "key now 2", "other"}
	if done, err := h.Completed(h.ctx, "mine", keys); err != nil || len(done) != 1 || done["key now 0"] == "" {
		h.Errorf("completed: %v (%v)", done, err)
	}
	if done, err := h.Completed(h.ctx, "theirs", keys); err != nil || len(done) != 0 {
		h.Errorf("of another scope: %v (%v)", done, err)
	}
}

func setLast(h *harness) {
	if _, err := h.LastSet(h.ctx, "mine", ""); !errors.Is(err, store.ErrNoSet) {
		h.Errorf("of nothing: %v", err)
	}
	first, second := h.set("mine", "x", 1, "a"), h.set("mine", "y", 1, "a")
	again := h.set("mine", "x", 1, "a")
	for content, want := range map[string]thread.ID{"x": again, "y": second, "": again} {
		if got, err := h.LastSet(h.ctx, "mine", content); err != nil || got.ID != want {
			h.Errorf("last of %q: %s (%v), want %s; the first is %s", content, got.ID, err, want, first)
		}
	}
}

func setSpawns(h *harness) {
	parent := h.running("p", "")
	n := h.newThread("map", parent)
	n.Kind, n.Run, n.MaxSpawns, n.Spawns = thread.KindSet, thread.NewRun(), 5, 6
	var many *store.SpawnsError
	if _, _, err := h.Register(h.ctx, n, claimNothing); !errors.As(err, &many) || many.Asked != 6 || h.get(parent).SpawnCount != 0 {
		h.Errorf("six of five: %v", err)
	}
	n.Spawns = 4
	_, _, err := h.Register(h.ctx, n, claimNothing)
	if h.noError(err); h.get(parent).SpawnCount != 4 {
		h.Errorf("%d were counted", h.get(parent).SpawnCount)
	}
	n.Run, n.Spawns = thread.NewRun(), 2
	if _, _, err := h.Register(h.ctx, n, claimNothing); !errors.As(err, &many) {
		h.Errorf("two more: %v", err)
	}
}

func setQueue(h *harness) {
	root := h.set("", "x", 9, "a")
	parent := h.running("p", "")
	below, run := h.registeredSet(parent)
	_, err := h.OpenSet(h.ctx, below, run, newSet("", "y", 9, "a"), h.now)
	h.noError(err)
	var ids []thread.ID
	other := h.register("other", "")
	ofRoot, err := h.startEntry(root, 0)
	h.noError(err)
	ofChild, err := h.startEntry(below, 0)
	h.noError(err)
	for _, id := range []thread.ID{other, ofRoot, ofChild} {
		_, err := h.Enqueue(h.ctx, id, 0, h.now)
		h.noError(err)
	}
	var next thread.Record
	for place := (store.QueuePlace{}); ; ids = append(ids, next.ThreadID) {
		next, place, err = h.Next(h.ctx, 100, place)
		if h.noError(err); next.ThreadID == "" {
			break
		}
	}
	if want := []thread.ID{ofChild, other, ofRoot}; !slices.Equal(ids, want) {
		h.Errorf("queue %v, want %v", ids, want)
	}
}

func setList(h *harness) {
	id := h.set("", "x", 9, "a")
	e := h.entry(id, 0)
	root := h.running("root", "")
	child := h.running("child", root)
	list := func(f store.Filter) []thread.ID {
		rows, _, err := h.List(h.ctx, f)
		h.noError(err)
		var ids []thread.ID
		for _, rec := range rows {
			ids = append(ids, rec.ThreadID)
		}
		slices.Sort(ids)
		return ids
	}
	all, some := []thread.ID{child, e, id, root}, []thread.ID{child, id, root}
	slices.Sort(all)
	slices.Sort(some)
	if got := list(store.Filter{}); !slices.Equal(got, all) {
		h.Errorf("all: %v", got)
	}
	if got := list(store.Filter{WithoutEntries: true}); !slices.Equal(got, some) {
		h.Errorf("without entries: %v", got)
	}
	if got := list(store.Filter{WithoutEntries: true, States: []thread.State{thread.Running}}); !slices.Equal(got, some) {
		h.Errorf("running, without entries: %v", got)
	}
}
