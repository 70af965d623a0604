package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var messageTests = []test{
	{"messages are kept as they were posted, in order", messagesKept},
	{"only threads that go on are told", messagesOfLiving},
	{"what is delivered is read once", messagesDelivered},
	{"a run that was replaced delivers nothing", messagesFenced},
	{"who has ended reading is told nothing", messagesEnd},
	{"a run that was replaced does not end reading", endReadingFenced},
	{"of an end and a post one comes first", messagesOrEnd},
	{"a successor is given what was not read", messagesPassedOn},
	{"a thread that is resumed is given what was not read", messagesOfResumed},
	{"a queue is bounded, and notes before others", messagesBounded},
	{"a thread writes so many notes a turn", notesBounded},
	{"texts have a length", messageTexts},
	{"of posts at once all are kept", messagesAtOnce},
	{"posting and delivering wake", messagesWake},
	{"ends are those of chains", endsOfThreads},
}

// notes are bounds of notes that nothing in a test reaches.
var notes = store.NoteBound{Notes: 1000, Bytes: 1 << 20}

func (h *harness) message(id string, reader thread.ID) thread.Message {
	return thread.Message{
		ID: id, Kind: thread.Steer, Reader: reader, From: thread.Sender{Kind: thread.ByClient, Name: "editor"},
		Text: "text of " + id, At: h.now,
	}
}

func (h *harness) post(m thread.Message) {
	h.Helper()
	_, err := h.Post(h.ctx, m, notes)
	h.noError(err)
}

// wantUnread is what a thread has not read, by ids, in its row too.
func (h *harness) wantUnread(reader thread.ID, want ...string) {
	h.Helper()
	list, err := h.Unread(h.ctx, reader)
	h.noError(err)
	var got []string
	for _, m := range list {
		got = append(got, m.ID)
		if m.Reader != reader {
			h.Errorf("message %s is for %s, and in the queue of %s", m.ID, m.Reader, reader)
		}
	}
	if !slices.Equal(got, want) || h.get(reader).Unread != len(want) {
		h.Errorf("%s has not read %v (its row says %d), want %v", reader, got, h.get(reader).Unread, want)
	}
}

func messagesKept(h *harness) {
	id := h.running("d", "")
	want := []thread.Message{h.message("b", id), h.message("a", id), h.message("c", id)}
	want[1].From, want[1].Kind = thread.Sender{Kind: thread.ByChild, Name: string(id)}, thread.Note
	want[2].From, want[2].Interrupt, want[2].Text = thread.Sender{Kind: thread.ByPerson}, true, "§ \u2028 '\"\n"
	for i, m := range want {
		unread, err := h.Post(h.ctx, m, notes)
		h.noError(err)
		if unread != i+1 {
			h.Errorf("%d are unread after %d posts", unread, i+1)
		}
	}
	got, err := h.Unread(h.ctx, id)
	h.noError(err)
	if !reflect.DeepEqual(got, want) {
		h.Errorf("messages\n%+v, want\n%+v", got, want)
	}
	if _, err := h.Post(h.ctx, want[0], notes); err == nil {
		h.Error("two messages have one id")
	}
	h.wantUnread(id, "b", "a", "c")
}

func messagesOfLiving(h *harness) {
	for _, state := range thread.States() {
		id := h.inState(state)
		_, err := h.Post(h.ctx, h.message(string(state), id), notes)
		var unreadable *store.UnreadableError
		if refused := errors.As(err, &unreadable); refused != state.Terminal() || refused && (unreadable.State != state || unreadable.Thread != id) {
			h.Errorf("a %s thread is told: %v", state, err)
		}
	}
	if _, err := h.Post(h.ctx, h.message("m", "nobody"), notes); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("an unknown thread is told: %v", err)
	}
	id := h.running("d", "")
	_, err := h.RequestCancel(h.ctx, id, "", h.now)
	h.noError(err)
	var unreadable *store.UnreadableError
	if _, err := h.Post(h.ctx, h.message("m", id), notes); !errors.As(err, &unreadable) || !unreadable.Stopped {
		h.Errorf("one that is asked to stop is told: %v", err)
	}
	h.wantUnread(id)
}

func messagesDelivered(h *harness) {
	id, other := h.running("d", ""), h.running("d", "")
	for _, m := range []string{"a", "b", "c"} {
		h.post(h.message(m, id))
	}
	h.post(h.message("of another", other))
	for range 2 {
		h.noError(h.Deliver(h.ctx, id, h.get(id).Run, []string{"a", "c", "nothing", "of another"}, h.now))
		h.wantUnread(id, "b")
	}
	h.wantUnread(other, "of another")
	if err := h.Deliver(h.ctx, "nobody", "", []string{"a"}, h.now); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("delivered to nobody: %v", err)
	}
}

func messagesFenced(h *harness) {
	id := h.withRun("before", "")
	h.post(h.message("m", id))
	_, err := h.Replace(h.ctx, id, "before", "after")
	h.noError(err)
	if err := h.Deliver(h.ctx, id, "before", []string{"m"}, h.now); !errors.Is(err, store.ErrFenced) {
		h.Errorf("a run that was replaced delivers: %v", err)
	}
	h.wantUnread(id, "m")
	h.noError(h.Deliver(h.ctx, id, "after", []string{"m"}, h.now))
	h.wantUnread(id)
}

// endReading ends reading as the run that a thread has.
func endReading(h *harness, id thread.ID, whatever bool) (ended bool) {
	h.Helper()
	ended, err := h.EndReading(h.ctx, id, h.get(id).Run, whatever, h.now)
	h.noError(err)
	return ended
}

// wantEnding is that a thread is told nothing any more.
func wantEnding(h *harness, id thread.ID) {
	h.Helper()
	var unreadable *store.UnreadableError
	if _, err := h.Post(h.ctx, h.message("late for "+string(id), id), notes); !errors.As(err, &unreadable) || !unreadable.Ending || unreadable.Thread != id {
		h.Errorf("one that has ended reading is told: %v", err)
	}
}

func messagesEnd(h *harness) {
	id, other := h.withRun("r1", ""), h.running("d", "")
	note := h.message("note", id)
	note.Kind = thread.Note
	note.From = thread.Sender{Kind: thread.ByChild, Name: string(other)}
	h.post(note)
	h.post(h.message("steer", id))
	if endReading(h, id, false) {
		h.Error("it ends reading with an instruction that it has not read")
	}
	h.post(h.message("more", id))
	h.noError(h.Deliver(h.ctx, id, "r1", []string{"steer", "more"}, h.now))
	for range 2 {
		if !endReading(h, id, false) {
			h.Error("a note keeps it from ending")
		}
		wantEnding(h, id)
		h.wantUnread(id, "note")
	}
	h.post(h.message("of another", other))
	if !endReading(h, other, true) {
		h.Error("it does not end reading whatever is unread")
	}
	wantEnding(h, other)
	h.wantUnread(other, "of another")
	if _, err := h.EndReading(h.ctx, "nobody", "", true, h.now); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("nobody ends reading: %v", err)
	}
}

func endReadingFenced(h *harness) {
	id := h.withRun("before", "")
	if !endReading(h, id, false) {
		h.Error("it does not end reading")
	}
	_, err := h.Replace(h.ctx, id, "before", "after")
	h.noError(err)
	h.post(h.message("m", id)) // the run that replaced it reads
	if _, err := h.EndReading(h.ctx, id, "before", true, h.now); !errors.Is(err, store.ErrFenced) {
		h.Errorf("a run that was replaced ends reading: %v", err)
	}
	h.wantUnread(id, "m")
}

// messagesOrEnd posts while a thread ends: what is accepted keeps it from ending.
func messagesOrEnd(h *harness) {
	for i := range 20 {
		id := h.withRun(thread.Run(fmt.Sprint("r", i)), "")
		m := h.message(fmt.Sprint("m", i), id)
		posted := make(chan error, 1)
		go func() {
			_, err := h.Post(h.ctx, m, notes)
			posted <- err
		}()
		ended := endReading(h, id, false)
		if accepted := <-posted == nil; accepted == ended {
			h.Errorf("the message is accepted: %v, and the thread has ended reading: %v", accepted, ended)
		}
	}
}

func messagesPassedOn(h *harness) {
	id := h.running("d", "")
	h.post(h.message("read", id))
	h.noError(h.Deliver(h.ctx, id, h.get(id).Run, []string{"read"}, h.now))
	h.post(h.message("a", id))
	n := h.newThread("d", "")
	n.ContinuationOf, n.Handoff = id, true
	next, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	h.post(h.message("b", id))
	h.wantUnread(next.ThreadID)
	c, err := store.Finished(id, thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: next.ThreadID}}, nil, h.now)
	h.noError(err)
	h.apply(c)
	h.wantUnread(id)
	var unreadable *store.UnreadableError
	if _, err := h.Post(h.ctx, h.message("late", id), notes); !errors.As(err, &unreadable) || unreadable.By != next.ThreadID {
		h.Errorf("one that has handed over is told: %v", err)
	}
	h.post(h.message("c", next.ThreadID))
	h.wantUnread(next.ThreadID, "a", "b", "c")
}

func messagesOfResumed(h *harness) {
	id := h.running("d", "")
	h.post(h.message("a", id))
	h.apply(h.finished(id, thread.Error))
	n := h.newThread("d", "")
	n.ContinuationOf = id
	var next [2]thread.Record
	for i := range next {
		var err error
		next[i], _, err = h.Register(h.ctx, n, claimNothing)
		h.noError(err)
	}
	h.wantUnread(id, "a")
	for range 2 {
		h.noError(h.Link(h.ctx, id, next[1].ThreadID, h.now))
	}
	h.wantUnread(id)
	h.wantUnread(next[0].ThreadID)
	h.wantUnread(next[1].ThreadID, "a")
}

func messagesBounded(h *harness) {
	id := h.running("d", "")
	var full *store.QueueFullError
	for i := range store.MaxUnread + 1 {
		note := h.message(fmt.Sprintf("note %d", i), id)
		note.Kind, note.From = thread.Note, thread.Sender{Kind: thread.ByChild, Name: string(id)}
		if _, err := h.Post(h.ctx, note, notes); (err != nil) != (i >= store.MaxUnreadNotes) || err != nil && !errors.As(err, &full) {
			h.Fatalf("note %d: %v", i, err)
		}
	}
	for i := store.MaxUnreadNotes; i <= store.MaxUnread; i++ {
		if _, err := h.Post(h.ctx, h.message(fmt.Sprint(i), id), notes); (err != nil) != (i == store.MaxUnread) || err != nil && !errors.As(err, &full) {
			h.Fatalf("message %d: %v", i, err)
		}
	}
	if full.Unread != store.MaxUnread || full.Thread != id {
		h.Errorf("refused with %+v", full)
	}
	for i := store.MaxUnread; i <= store.MaxUnreadPerson; i++ {
		m := h.message(fmt.Sprint("person ", i), id)
		m.From = thread.Sender{Kind: thread.ByPerson}
		if _, err := h.Post(h.ctx, m, notes); (err != nil) != (i == store.MaxUnreadPerson) || err != nil && !errors.As(err, &full) {
			h.Fatalf("message %d, of a person: %v", i, err)
		}
	}
}

func notesBounded(h *harness) {
	reader, sender := h.running("d", ""), h.running("d", "")
	bound := store.NoteBound{Notes: 2, Bytes: 20}
	number := 0
	write := func(text string) error {
		number++
		m := h.message(fmt.Sprint(number), reader)
		m.Kind, m.From, m.Text = thread.Note, thread.Sender{Kind: thread.BySibling, Name: string(sender)}, text
		_, err := h.Post(h.ctx, m, bound)
		return err
	}
	var over *store.NotesError
	h.noError(write("12345"))
	h.noError(h.Deliver(h.ctx, reader, h.get(reader).Run, []string{"1"}, h.now)) // notes that are read count all the same
	if err := write("1234567890123456"); !errors.As(err, &over) || over.Sender != sender || over.NoteBound != bound {
		h.Errorf("16 bytes more: %v", err)
	}
	h.noError(write("123456789012345"))
	if err := write("1"); !errors.As(err, &over) {
		h.Errorf("a third: %v", err)
	}
	h.post(h.message("steer", reader)) // is held to no such bound
	h.noError(h.RecordCost(h.ctx, sender, thread.Cost{Turns: 1}, 0))
	h.noError(write("1"))
}

func messageTexts(h *harness) {
	id := h.running("d", "")
	for length, fits := range map[int]bool{0: false, 1: true, store.MaxMessageBytes: true, store.MaxMessageBytes + 1: false} {
		m := h.message(fmt.Sprint(length), id)
		m.Text = strings.Repeat("x", length)
		if _, err := h.Post(h.ctx, m, notes); (err == nil) != fits || err != nil && !errors.Is(err, store.ErrNoText) {
			h.Errorf("%d bytes: %v", length, err)
		}
	}
}

func messagesAtOnce(h *harness) {
	id := h.running("d", "")
	const many = 24
	seen := make([]bool, many+1)
	unread := make([]int, many)
	for i, err := range atOnce(many, func(i int) (err error) {
		unread[i], err = h.Post(h.ctx, h.message(fmt.Sprint(i), id), notes)
		return err
	}) {
		h.noError(err)
		if seen[unread[i]] {
			h.Errorf("two are number %d of the queue", unread[i])
		}
		seen[unread[i]] = true
	}
	if list, err := h.Unread(h.ctx, id); err != nil || len(list) != many {
		h.Errorf("%d messages, %v", len(list), err)
	}
}

func messagesWake(h *harness) {
	id := h.running("d", "")
	before := h.get(id)
	changes := h.Changes(h.ctx)
	at := h.now.Add(time.Minute)
	m := h.message("m", id)
	m.At = at
	for i, change := range []func() error{
		func() error { _, err := h.Post(h.ctx, m, notes); return err },
		func() error { return h.Deliver(h.ctx, id, h.get(id).Run, []string{"m"}, at) },
	} {
		select { // one may be left of what came before
		case <-changes:
		default:
		}
		h.noError(change())
		select {
		case <-changes:
		case <-h.ctx.Done():
			h.Fatalf("nobody is woken by change %d", i)
		}
	}
	if now := h.get(id); !now.UpdatedAt.Equal(at) || before.UpdatedAt.Equal(at) {
		h.Errorf("updated at %v, and was at %v", now.UpdatedAt, before.UpdatedAt)
	}
}

func endsOfThreads(h *harness) {
	var asked []thread.ID
	for _, state := range thread.States() {
		asked = append(asked, h.inState(state))
	}
	first := h.running("d", "")
	n := h.newThread("d", "")
	n.ContinuationOf, n.Handoff = first, true
	second, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	c, err := store.Finished(first, thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: second.ThreadID}}, nil, h.now)
	h.noError(err)
	h.apply(c)
	asked = append([]thread.ID{first, "nobody"}, asked...)
	for _, want := range [][2]string{
		{"", "[in-completed:in-completed in-error:in-error in-cancelled:in-cancelled]"},
		{string(second.ThreadID), "[d:d in-completed:in-completed in-error:in-error in-cancelled:in-cancelled]"},
	} {
		if want[0] != "" {
			h.apply(store.Claimed(second.ThreadID, thread.Process{PID: 1}, h.now))
			h.apply(h.finished(second.ThreadID, thread.Completed))
		}
		ended, err := h.Ended(h.ctx, asked)
		h.noError(err)
		got := []string{}
		for _, e := range ended {
			got = append(got, h.get(e.Asked).Directive+":"+e.Record.Directive)
			if e.Asked == first && e.Record.ThreadID != second.ThreadID || e.Asked != first && e.Record.ThreadID != e.Asked {
				h.Errorf("%s ended as %s", e.Asked, e.Record.ThreadID)
			}
		}
		if fmt.Sprint(got) != want[1] {
			h.Errorf("ended %v, want %s", got, want[1])
		}
	}
}
