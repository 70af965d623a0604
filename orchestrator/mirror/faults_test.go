package mirror

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestRowsLost: a row that is not there is no deletion while the thread has records.
func TestRowsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(1)
	w.send()
	w.must(w.notes.Note(d1))
	delete(w.rows, d1)
	w.send()
	did, err := w.mirror().Sweep(t.Context(), w.note, noon)
	if inWords(w.there(d1)) != states[1] || did != "" || err != nil || w.notes.Count() > 0 {
		t.Errorf("%q, %v", did, err)
	}
}

// answers has the server answer so until it has n times.
func (w *world) answers(n, status int, body string) {
	w.Fault(func(rw http.ResponseWriter, _ *http.Request) bool {
		if n--; n < 0 {
			return false
		}
		if status == 0 { // it closes the connection
			panic(http.ErrAbortHandler)
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
		return true
	})
}

// TestServerFaults: nothing is lost, whatever the server answers for an hour.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	const forever = 1 << 30
	for name, c := range map[string]struct {
		status int
		body   string
		once   bool   // one such answer is got over without the next sender
		says   string // of the error
		left   int    // that are due without an error
		drops  bool   // it is not tried again
	}{
		"unavailable": {503, "", true, "503", 0, false},
		"error":       {500, "Internal Server Error", true, "500: Internal Server Error", 0, false},
		"closed":      {0, "", true, "cannot be reached", 0, false},
		"too many":    {429, "", true, "429", 0, false},
		"busy":        {409, "Thread is busy", false, "", 1, false},
		"garbage":     {200, "<html>", false, "no answer of a LangGraph server", 0, false},
		"other id":    {200, `{"thread_id":"` + uuid.NewString() + `"}`, false, "answers with", 0, false},
		"key":         {401, `{"detail":"Missing key"}`, false, "another key: 401: Missing key", 0, false},
		"redirect":    {302, "", false, "not followed", 0, false},
		"gone":        {404, "404 Not Found", false, "404", 0, false},
		"refused":     {422, `{"detail":"no"}`, false, "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.grow(1)
			if c.once {
				w.answers(1, c.status, c.body)
				w.send()
				if inWords(w.there(d1)) != states[1] || len(w.waited) != 1 || w.waited[0] != time.Second {
					t.Errorf("one such answer: waited %v", w.waited)
				}
				w.must(w.notes.Note(d1))
			}
			w.answers(forever, c.status, c.body)
			sent, err := w.sender().Run(t.Context())
			if (err != nil) != (c.says != "") || err != nil && (!errors.Is(err, ErrLeft) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%+v, %v", sent, err)
			}
			if sent.Left != c.left && c.says == "" || w.notes.Count() != map[bool]int{false: 1}[c.drops] || sent.Refused != map[bool]int{true: 1}[c.drops] {
				t.Errorf("%+v, %d due", sent, w.notes.Count())
			}
			if w.rest.Over(w.now) == (c.says != "") {
				t.Errorf("rests: %v", !w.rest.Over(w.now))
			}
			failure, at := w.rest.Failed()
			if (failure != "") != (c.says != "") || failure != "" && !at.Equal(w.now) || strings.Contains(failure, w.Setting()) || c.body != "" && strings.Contains(failure, c.body) {
				t.Errorf("of the failure at %s is kept: %q", at, failure)
			}
			// An hour later it is back, and the thread has gone on.
			w.Fault(nil)
			w.now = w.now.Add(time.Hour)
			w.grow(2)
			w.send()
			if got := inWords(w.there(d1)); got != states[2] || w.notes.Count() > 0 {
				t.Errorf("after it: %s, %d due", got, w.notes.Count())
			}
		})
	}
}

// TestOneBad: a thread that the server has trouble with does not keep the others, and many
// such are the server's trouble.
func TestOneBad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 9 {
		w.is(thread.Record{ThreadID: thread.ID(fmt.Sprintf("d-%d", i)), Status: thread.Running})
	}
	bad := map[string]bool{IDOf("place", "d-3").String(): true}
	fault := func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !bad[filepath.Base(r.URL.Path)] {
			return false
		}
		rw.WriteHeader(http.StatusInternalServerError)
		return true
	}
	w.Fault(fault)
	sent, err := w.sender().Run(t.Context())
	if sent.Threads != 8 || sent.Left != 1 || !errors.Is(err, ErrLeft) || !strings.Contains(err.Error(), "d-3: ") {
		t.Errorf("%+v, %v", sent, err)
	}
	for i := range 9 {
		bad[IDOf("place", thread.ID(fmt.Sprintf("d-%d", i))).String()] = true
		w.must(w.notes.Note(thread.ID(fmt.Sprintf("d-%d", i))))
	}
	w.waited = nil
	if sent, err = w.sender().Run(t.Context()); sent.Left != 3 || err == nil || len(w.waited) != 3 {
		t.Errorf("%+v, %v, waited %v", sent, err, w.waited)
	}
}

// TestLongState: a long transcript goes in several requests, and a text that is too long
// says what it lacks.
func TestLongState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.is(thread.Record{ThreadID: d1, Status: thread.Running})
	long := strings.Repeat("é", maxText) // two bytes each
	for range 12 {
		w.asked(d1, long)
	}
	w.send()
	at := w.there(d1)
	text, _ := at.Messages[11]["content"].(string)
	if len(at.Messages) != 12 || at.States < 3 || !strings.HasSuffix(text, fmt.Sprintf("\n[%d more bytes]", maxText)) || len(text) > maxText+40 {
		t.Errorf("%d messages in %d parts, %d bytes", len(at.Messages), at.States, len(text))
	}
	for _, r := range w.Requests() {
		if len(r.Body) > partBytes+maxText+4096 {
			t.Errorf("a request of %d bytes", len(r.Body))
		}
	}
}

// TestTorn: of a transcript whose last line is not whole the rest is sent.
func TestTorn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grow(1)
	whole := w.transcripts[d1]
	w.grow(2)
	w.transcripts[d1] = w.transcripts[d1][:len(w.transcripts[d1])-20]
	w.send()
	if got := inWords(w.there(d1)); !strings.HasPrefix(got, states[1]) || strings.Contains(got, "package b") || len(whole) == 0 {
		t.Errorf("%s", got)
	}
}
