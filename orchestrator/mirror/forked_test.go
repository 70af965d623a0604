package mirror

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph/langgraphtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestCompare says what differs, and Whole mends it.
func TestCompare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(1)
	for _, id := range []thread.ID{"d-2", "d-3", "d-4", "d-5"} {
		w.is(thread.Record{ThreadID: id, Status: thread.Completed})
	}
	w.send()
	at := w.there(d1)
	at.Messages = at.Messages[:1]
	w.Put(at) // somebody has changed it there
	behind := w.there("d-2")
	behind.Metadata["rye_status"] = "running"
	w.Put(behind)
	delete(w.rows, "d-3")
	w.deleted["d-3"] = true
	copied := w.there("d-5")
	copied.ID = "acb8a3cb-bcae-4979-b79a-6ba32faa016c"
	w.Put(copied)
	m := w.mirror()
	w.must(m.Client.Delete(t.Context(), IDOf("place", "d-4")))
	all, err := m.Compare(t.Context())
	want := []Difference{
		{"d-2", IDOf("place", "d-2"), Behind}, {"d-3", IDOf("place", "d-3"), Extra}, {"d-4", IDOf("place", "d-4"), Missing},
		{"d-5", uuid.MustParse(copied.ID), Copied},
	}
	if err != nil || !reflect.DeepEqual(all, want) {
		t.Fatalf("%+v, %v\nwant %+v", all, err, want)
	}
	w.must(m.EachHere(t.Context(), func(rec thread.Record) error { return w.notes.Note(rec.ThreadID) }))
	if did, err := m.Sweep(t.Context(), w.note, noon); err != nil || did != "1 threads are no more here, 0 forks were given up" {
		t.Errorf("%q, %v", did, err)
	}
	w.whole = true
	w.send()
	if all, err = m.Compare(t.Context()); err != nil || !reflect.DeepEqual(all, want[3:]) || inWords(w.there(d1)) != states[1] {
		t.Errorf("after it %+v, %v: %s", all, err, inWords(w.there(d1)))
	}
}

// TestForked: the copy that a fork was made from is the thread's there, says what the
// thread says, and goes with it; the thread that was copied stays.
func TestForked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(1)
	w.send()
	m := w.mirror()
	begun, err := m.BeginFork(t.Context(), IDOf("place", d1), noon)
	if err != nil || len(begun.Messages) != 2 || begun.ID == IDOf("place", d1) {
		t.Fatalf("%+v, %v", begun, err)
	}
	for at, want := range map[time.Time]string{noon.Add(time.Minute): "", noon.Add(2 * time.Hour): "1 forks"} {
		o := newWorld(t)
		for _, there := range w.Threads() {
			o.Put(there)
		}
		if did, err := o.mirror().Sweep(t.Context(), o.note, at); err != nil || !strings.Contains(did, want) || (did == "") != (want == "") {
			t.Errorf("%s: %q, %v", at, did, err)
		}
	}
	w.is(thread.Record{ThreadID: "fork-1", Kind: thread.KindDirective, Status: thread.Running, Metadata: []byte(`{"mirrored_as":"` + begun.ID.String() + `"}`)})
	w.send() // before anything was said
	w.must(w.notes.Note("fork-1"))
	w.asked("fork-1", "go on")
	for range 2 {
		w.send()
		w.must(w.notes.Note("fork-1"))
	}
	var forked langgraphtest.Thread
	for _, there := range w.Threads() {
		if there.ID == begun.ID.String() {
			forked = there
		}
	}
	if inWords(forked) != "human:go on" || forked.Metadata["rye_thread"] != "fork-1" || forked.Metadata["rye_fork_of"] != IDOf("place", d1).String() || len(w.Threads()) != 2 {
		t.Errorf("%s, %v of %d", inWords(forked), forked.Metadata, len(w.Threads()))
	}
	delete(w.rows, "fork-1")
	delete(w.transcripts, "fork-1")
	w.deleted["fork-1"] = true
	w.send()
	if len(w.Threads()) != 1 || inWords(w.there(d1)) != states[1] {
		t.Errorf("%+v", w.Threads())
	}
	if _, err := m.BeginFork(t.Context(), uuid.New(), noon); !errors.Is(err, langgraph.ErrNotFound) {
		t.Errorf("a fork of nothing: %v", err)
	}
}

// TestAttackMirrorSearch: a mirror answers a search with the same page for ever, and with threads of another place that it calls deleted. The sweep ends, and nothing that is not the project's own copy is deleted.
func TestAttackMirrorSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deleted[d1] = true
	var page []string
	for i := range langgraph.PageSize {
		page = append(page, fmt.Sprintf(`{"thread_id":%q,"metadata":{"rye_place":"other","rye_thread":%q,"rye_self":%q,"rye_pending":1}}`,
			uuid.NewSHA1(space, []byte{byte(i)}), d1, uuid.NewSHA1(space, []byte{byte(i)})))
	}
	body := "[" + strings.Join(page, ",") + "]"
	w.Fault(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && r.URL.Path != "/threads/"+IDOf("place", d1).String() {
			t.Errorf("%s is deleted", r.URL.Path)
		}
		if r.URL.Path == "/threads/search" {
			_, _ = io.WriteString(rw, body)
			return true
		}
		return false
	})
	m := w.mirror()
	if did, err := m.Sweep(t.Context(), w.note, noon); err != nil || did != "" || w.notes.Count() > 0 {
		t.Errorf("%q, %v", did, err)
	}
	if all, err := m.Compare(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
	w.must(w.notes.Note(d1))
	w.send()
}
