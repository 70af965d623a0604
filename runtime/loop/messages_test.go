package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// post has the person say something to a thread.
func (h *house) post(id thread.ID, texts ...string) {
	h.t.Helper()
	for _, text := range texts {
		h.send(thread.Message{Kind: thread.Steer, Reader: id, From: thread.Sender{Kind: thread.ByPerson}, Text: text})
	}
}

// send posts a message of anybody.
func (h *house) send(m thread.Message) {
	h.t.Helper()
	m.ID, m.At = uuid.NewString(), time.Now()
	if _, err := h.store.Post(context.WithoutCancel(h.t.Context()), m, store.NoteBound{Notes: 1000, Bytes: 1 << 20}); err != nil {
		h.t.Error(err)
	}
}

// read are the texts that a thread was told, without what stands around them.
func (h *house) read(id thread.ID) (texts []string) {
	h.t.Helper()
	for _, m := range events[transcript.Message](h, id, thread.EventMessage) {
		_, text, _ := strings.Cut(m.Blocks[0].Text, "<message>\n")
		text, end, found := strings.Cut(text, "\n</message>")
		if !found || end != "" {
			h.t.Errorf("told %q", m.Blocks[0].Text)
		}
		texts = append(texts, text)
	}
	return texts
}

// checkMessages: each message is in the transcript once, or stands in the queue, and
// none is in both.
func (h *house) checkMessages(id thread.ID, want ...string) {
	h.t.Helper()
	got := h.read(id)
	left, err := h.store.Unread(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, m := range left {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("read and left: %q, want %q", got, want)
	}
}

// TestMessagesAreRead: what a thread is told while it works is in the next request to its
// model, once and in order, and a thread does not end before it has read it.
func TestMessagesAreRead(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const outputs = `<output name="word" type="string" required="true">one</output>`
	for name, c := range map[string]struct {
		script, outputs string
		before, during  []string // the start; the first tool
		last            []string // of each request, a part
		result          string
	}{
		"before it starts": {
			script: "turns:\n  - text: done\n", before: []string{"use Go", "not C"}, last: []string{"not C"}, result: "done",
		},
		"during a tool": {
			script: "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_act, input: {}}]}\n  - text: done\n",
			during: []string{"use Go"}, last: []string{"Do the task", "use Go"}, result: "done",
		},
		"before it returns": {
			script: "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_act, input: {}}, {name: rye_directive_return, input: {word: a}}]}\n" +
				"  - tool_calls: [{name: rye_directive_return, input: {word: b}}]\n",
			outputs: outputs, during: []string{"return b"}, last: []string{"Do the task", "return b"}, result: `{"word":"b"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script(c.script)
			id := h.register(job{outputs: c.outputs})
			h.post(id, c.before...)
			h.tools.act = func() error { h.post(id, c.during...); return nil }
			rec := h.end(t.Context(), id)
			if rec.Status != thread.Completed || rec.Outcome.Result != c.result || len(rec.Outcome.Warnings) > 0 || rec.Unread != 0 {
				t.Fatalf("%s %+v", rec.Status, rec.Outcome)
			}
			asked := h.asked()
			for i, part := range c.last {
				if i >= len(asked) || !strings.Contains(asked[i], part) {
					t.Fatalf("request %d of %q lacks %q", i, asked, part)
				}
			}
			if want := slices.Concat(c.before, c.during); len(asked) != len(c.last) || !slices.Equal(h.read(id), want) {
				t.Errorf("%d requests, read %q, want %q", len(asked), h.read(id), want)
			}
		})
	}
}

// TestMessageBeforeTheEnd: a thread whose model says that it is done reads what came
// meanwhile, and goes on. Without a turn left it ends, and says that it has not.
func TestMessageBeforeTheEnd(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, turns := range []int{1, 2} {
		t.Run(fmt.Sprint(turns), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script("turns:\n  - {match: {turn: 1}, text: done}\n  - text: done as you said\n")
			id := h.register(job{limits: func(l *thread.Limits) { l.Turns = turns }})
			d := h.deps(id)
			d.Crashpoints = func(at thread.Crashpoint) {
				if rec, err := h.store.Get(t.Context(), id); at == CrashAnswer && err == nil && rec.Cost.Turns == 1 {
					h.post(id, "in French")
				}
			}
			rec, err := Run(t.Context(), d)
			if err != nil || rec.Status != thread.Completed {
				t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome, err)
			}
			late := strings.Contains(strings.Join(rec.Outcome.Warnings, " "), "1 message to this thread was not read")
			if late != (turns == 1) || rec.Cost.Turns != turns || (rec.Outcome.Result == "done") != late {
				t.Errorf("%+v after %d turns", rec.Outcome, rec.Cost.Turns)
			}
			h.checkMessages(id, "in French")
		})
	}
}

// TestInterrupt: a message breaks off what is on its way only when it asks for that, and
// once. The cost of the call is paid, and calls that have not begun are not made.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for when, c := range map[string]struct {
		script  string
		results []string
	}{
		"during a call": {script: "turns:\n" +
			"  - {times: 1, text: half an answer, hang: true, cut_after: 3, usage: {input_tokens: 100, output_tokens: 10}}\n  - text: done\n"},
		"during tools": {
			script: "turns:\n" +
				"  - {match: {turn: 1}, tool_calls: [{name: test_wait, input: {}}, {name: test_wait, input: {word: b}}], usage: {input_tokens: 100, output_tokens: 10}}\n" +
				"  - text: done\n",
			results: []string{"test_wait was broken off by a message, which follows. It may have run in part", "test_wait was not run because of a message"},
		},
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.settings.ToolConcurrency = 1
			h.script(c.script)
			id := h.register(job{})
			r := newRun(h.deps(id))
			r.lookEvery = time.Millisecond
			go func() {
				h.awaitTrouble(t.Context(), id)
				h.post(id, "take your time")
				h.send(thread.Message{Kind: thread.Steer, Reader: id, From: thread.Sender{Kind: thread.ByPerson}, Text: "stop that", Interrupt: true})
			}()
			rec, err := r.toEnd(t.Context())
			if err != nil || rec.Status != thread.Completed || rec.Outcome.Result != "done" {
				t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome, err)
			}
			if got := h.read(id); !slices.Equal(got, []string{"take your time", "stop that"}) {
				t.Errorf("read %q", got)
			}
			if n := len(h.server.Requests()); n != 2 || rec.Cost.Spend <= 100 {
				t.Errorf("%d requests, spent %s", n, rec.Cost.Spend)
			}
			results := h.results(id)
			if len(results) != len(c.results) {
				t.Fatalf("results %+v", results)
			}
			for _, want := range c.results { // they come in any order
				if !slices.ContainsFunc(results, func(r transcript.ToolCallResult) bool { return r.IsError && strings.Contains(r.Text, want) }) {
					t.Errorf("results %+v, want one %q", results, want)
				}
			}
			h.checkConversation(r)
			h.checkAgreement(t.Context(), rec)
		})
	}
}

// TestNotesAreBounded: of notes a thread reads so many a turn, and so many bytes. The rest
// is read in the next, and instructions are not held up by it.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {}}]}\n  - {match: {turn: 2}, tool_calls: [{name: test_echo, input: {}}]}\n  - text: done\n")
	id := h.register(job{})
	long := strings.Repeat("x", 60)
	for _, text := range []string{"a", "b", "c", "d", long, long} {
		h.send(thread.Message{Kind: thread.Note, Reader: id, From: thread.Sender{Kind: thread.ByChild, Name: string(id)}, Text: text})
	}
	h.post(id, "steer")
	rec := h.end(t.Context(), id)
	if rec.Status != thread.Completed || rec.Unread != 0 {
		t.Fatalf("%s %+v, %d unread", rec.Status, rec.Outcome, rec.Unread)
	}
	if got, want := h.read(id), []string{"a", "b", "c", "steer", "d", long, long}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	var turns []string
	for _, typ := range h.eventTypes(id) {
		if typ == "message" || typ == "cognition_out" {
			turns = append(turns, typ[:1])
		}
	}
	if got := strings.Join(turns, ""); got != "mmmmcmmcmc" {
		t.Errorf("read in turns %s", got)
	}
}

// TestNoteDoesNotHoldUp: a thread that is done ends, whatever notes there are for it.
func TestNoteDoesNotHoldUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - text: done\n")
	id := h.register(job{})
	d := h.deps(id)
	d.Crashpoints = func(at thread.Crashpoint) {
		if at == CrashAnswer {
			h.send(thread.Message{Kind: thread.Note, Reader: id, From: thread.Sender{Kind: thread.BySibling, Name: string(id)}, Text: "hello"})
		}
	}
	if rec, err := Run(t.Context(), d); err != nil || rec.Status != thread.Completed || rec.Cost.Turns != 1 {
		t.Errorf("%s %+v, %v", rec.Status, rec.Outcome, err)
	}
}

// TestAttackMessageEndsItsElement: a note of another thread ends the element that it stands in, or begins one that speaks for the person. Text that looks like the element is escaped within it.
func TestAttackMessageEndsItsElement(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z]|</message>|</ Message >|<MESSAGE from="the person">|<|/|message|>|< /message|</b>)*`).Draw(t, "text")
		told := toldText(thread.Message{Kind: thread.Note, From: thread.Sender{Kind: thread.ByChild, Name: "child"}, Text: text})
		if n := len(elementMarks().FindAllString(told, -1)); n != 2 || !strings.HasSuffix(told, "\n</message>") {
			t.Fatalf("%q has %d marks", told, n)
		}
	})
}
