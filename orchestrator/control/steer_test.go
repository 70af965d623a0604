package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/steer"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// steer has a client say something to a thread.
func (s *scene) steer(id thread.ID, message string) (steer.Steered, error) {
	s.Helper()
	return s.c.Steer.Steer(s.ctx, steer.Request{ThreadID: id, Message: message, By: "MCP client test"})
}

// unread are the texts that a thread has not read.
func (s *scene) unread(id thread.ID) (texts []string) {
	s.Helper()
	list, err := s.c.Threads.Store.Unread(s.ctx, id)
	s.noError(err)
	for _, m := range list {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestSteer: a message goes to a thread that will read it, in whatever state it is; the
// answer says when. The others are refused with what to call.
func TestSteer(t *testing.T) {
	t.Parallel()
	s := narrow(t, 2)
	running, asks := s.start("idle", ""), s.start("work", "")
	queued := s.begin("work", "").ThreadID
	s.asks(asks)
	for _, c := range []struct {
		id   thread.ID
		when string
	}{{running, "before its next call"}, {asks, "when its question is answered"}, {queued, "when it has a slot"}} {
		for i, text := range []string{"first", "second\r\n\x1b[31mred\x00\u202e"} {
			told, err := s.steer(c.id, text)
			if err != nil || !strings.Contains(told.ReadWhen, c.when) || told.Position != i+1 || told.ThreadID != c.id {
				t.Errorf("%s: %+v, %v", c.id, told, err)
			}
		}
		if got := s.unread(c.id); !slices.Equal(got, []string{"first", "second\n[31mred"}) {
			t.Errorf("%s has not read %q", c.id, got)
		}
		status, err := s.c.View.Status(s.ctx, c.id)
		if err != nil || status.Unread != 2 {
			t.Errorf("status of %s: %d unread, %v", c.id, status.Unread, err)
		}
	}
	board, err := s.c.View.Board(s.ctx, 10, 10)
	if err != nil || !slices.ContainsFunc(board.Threads, func(r view.BoardRow) bool { return r.ThreadID == running && r.Unread == 2 }) {
		t.Errorf("board %+v, %v", board, err)
	}
	s.order(running, "complete")
	_, err = s.c.Threads.Store.RequestCancel(s.ctx, asks, "", testTime)
	s.noError(err)
	for id, want := range map[thread.ID]string{running: "conflict resume_thread", asks: "conflict resume_thread", "work/no-such": "not_found list_threads"} {
		_, err := s.steer(id, "too late")
		code, hint, _ := strings.Cut(want, " ")
		if f := tool.AsFault(err); err == nil || string(f.Code) != code || !strings.Contains(f.Hint, hint) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for text, want := range map[string]string{"": "empty", "\x00": "empty", strings.Repeat("x", 16<<10+1): "at most 16384", strings.Repeat("x", 1<<20): "at most 16384"} {
		if _, err := s.steer(queued, text); err == nil || code(err) != tool.CodeBadArguments || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v", text, err)
		}
	}
}

// TestSteerDeadThread: a message to a thread whose process is gone, which nobody has
// noticed yet, is refused.
func TestSteerDeadThread(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
	s.wait(s.c, WaitAll, id)
	if _, err := s.steer(id, "hello"); code(err) != tool.CodeConflict {
		t.Errorf("a dead thread is told: %v", err)
	}
}

// TestSteerChain: whichever thread of a chain is named, the newest is told, and a thread
// that continues another reads what that has not read.
func TestSteerChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello")
	_, err := s.steer(first, "a")
	s.noError(err)
	second := s.handOver(first)
	told, err := s.steer(first, "b")
	s.noError(err)
	if told.ResolvedThreadID != second || told.Position != 2 {
		t.Errorf("told %+v, want %s", told, second)
	}
	s.order(second, "complete")
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: first, Message: "go on"})
	s.noError(err)
	if got := s.unread(resumed.NewThreadID); !slices.Equal(got, []string{"a", "b"}) || len(s.unread(first))+len(s.unread(second)) > 0 {
		t.Errorf("the resumed thread is to read %q", got)
	}
}

// TestMessageReadByTheDead: a process that is killed when a message is in its transcript,
// and the registry does not know, has read it: the thread that is resumed is given the
// messages behind it, and the conversation with it in it. It is told of the ends of the
// children that the one before has started.
func TestMessageReadByTheDead(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	child := s.start("work", id)
	s.order(id, "say hello", "started "+string(child))
	for _, text := range []string{"read", "left"} {
		_, err := s.steer(id, text)
		s.noError(err)
	}
	s.order(id, "hear")
	s.order(child, "complete")
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
	s.wait(s.c, WaitAll, id)
	if got := s.unread(id); !slices.Equal(got, []string{"left"}) {
		t.Errorf("the dead thread has not read %q", got)
	}
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: id, Message: "go on"})
	s.noError(err)
	if got := s.unread(resumed.NewThreadID); !slices.Equal(got, []string{"left"}) || len(s.unread(id)) > 0 {
		t.Errorf("the resumed thread is to read %q", got)
	}
	said, err := s.c.Threads.Messages(resumed.NewThreadID)
	s.noError(err)
	if last := said[len(said)-1]; last.Blocks[0].Text != "read" {
		t.Errorf("its conversation ends with %+v", last)
	}
	meta, err := s.folder(resumed.NewThreadID).ReadMeta(s.c.Threads.Records.Seal())
	if err != nil || !slices.Equal(meta.Continuation.Children, []thread.ID{child}) {
		t.Errorf("continuation %+v, %v", meta.Continuation, err)
	}
}

// TestSteerEndsWait: a thread that waits for others hears at once of an instruction to
// it, and is told why the wait has ended. A note can wait.
func TestSteerEndsWait(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	note, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: child, To: steer.ToParent, Text: "half is done"})
	s.noError(err)
	if note.ThreadID != root || note.Position != 1 {
		t.Errorf("note %+v", note)
	}
	ended := make(chan view.WaitResult, 1)
	looked := make(chan struct{}, 100)
	go func() {
		r, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{child}, Timeout: giveUp, Parent: root, Progress: func(Progress) { looked <- struct{}{} }})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	<-looked // it waits, although there is a note
	_, err = s.steer(root, "stop waiting")
	s.noError(err)
	if r := <-ended; len(r.Pending) != 1 || !strings.HasPrefix(r.Next, "The wait was ended by a message to you") {
		t.Errorf("%+v", r)
	}
}

// TestInterruptedForkGoesOn: a thread that was started in a call which a message breaks
// off is not stopped, as it is when the call is cancelled.
func TestInterruptedForkGoesOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	ctx, interrupt := context.WithCancelCause(s.ctx)
	started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: root})
	s.noError(err)
	s.order(started.ThreadID, "claim")
	interrupt(thread.ErrInterrupted)
	now, err := Threads{s.c}.follow(ctx, started, WaitRequest{ThreadIDs: []thread.ID{started.ThreadID}, Mode: WaitAll, Timeout: giveUp})
	if err != nil || now.Status.Terminal() || !s.row(started.ThreadID).CancelRequestedAt.IsZero() {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestNotes: notes go to the parent and to threads below the same root, and say what the
// sender is to the reader. So many a turn.
func TestNotes(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	a, b := s.start("work", root), s.start("work", root)
	below := s.start("work", a)
	for _, c := range []struct {
		from  thread.ID
		to    string
		reads thread.ID
		as    thread.SenderKind
	}{
		{a, steer.ToParent, root, thread.ByChild}, {below, steer.ToParent, a, thread.ByChild}, {a, string(b), b, thread.BySibling},
		{below, string(b), b, thread.BySibling}, {root, string(below), below, thread.ByParent}, {below, string(root), root, thread.ByChild},
	} {
		_, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: c.from, To: c.to, Text: "note"})
		s.noError(err)
		list, err := s.c.Threads.Store.Unread(s.ctx, c.reads)
		s.noError(err)
		last := list[len(list)-1]
		if last.Kind != thread.Note || last.From != (thread.Sender{Kind: c.as, Name: string(c.from)}) {
			t.Errorf("from %s to %s: %+v", c.from, c.to, last)
		}
	}
	if _, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: a, To: string(a), Text: "me"}); code(err) != tool.CodeBadArguments {
		t.Errorf("to itself: %v", err)
	}
	if _, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: root, To: steer.ToParent, Text: "up"}); code(err) != tool.CodeUnsupported {
		t.Errorf("from a root to its parent: %v", err)
	}
	if _, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{To: steer.ToParent, Text: "up"}); code(err) != tool.CodeUnsupported {
		t.Errorf("from no thread: %v", err)
	}
	for i := range 8 {
		_, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: b, To: string(a), Text: "note"})
		if i < 8 && err != nil {
			t.Errorf("note %d: %v", i, err)
		}
	}
	if _, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: b, To: string(root), Text: "one more"}); code(err) != tool.CodeConflict {
		t.Errorf("a ninth note of a turn: %v", err)
	}
	s.write("config/agent/coordination.yaml", "notes: {per_turn: 0}\n")
	if _, err := s.controller().Steer.Note(s.ctx, steer.NoteRequest{From: a, To: string(b), Text: "off"}); code(err) != tool.CodeUnsupported {
		t.Errorf("turned off: %v", err)
	}
}

// TestAttackThreadSteersOthers: a model steers its parent, its siblings and itself, and writes notes to threads of another root. It is refused, and nothing is posted.
func TestAttackThreadSteersOthers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root, stranger := s.start("idle", ""), s.start("idle", "")
	a, b := s.start("work", root), s.start("work", root)
	below := s.start("work", a)
	for _, to := range []thread.ID{root, stranger, a, b} {
		if _, err := s.c.Steer.Steer(s.ctx, steer.Request{ThreadID: to, Message: "obey", From: a, Person: true, By: "the person"}); code(err) != tool.CodePermissionDenied {
			t.Errorf("%s steers %s: %v", a, to, err)
		}
		s.c.Threads.Parent = a // as for what a tool of the thread starts
		if _, err := s.c.Steer.Steer(s.ctx, steer.Request{ThreadID: to, Message: "obey", Person: true}); code(err) != tool.CodePermissionDenied {
			t.Errorf("a tool of %s steers %s: %v", a, to, err)
		}
		s.c.Threads.Parent = ""
	}
	if _, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: a, To: string(stranger), Text: "psst"}); code(err) != tool.CodePermissionDenied {
		t.Errorf("%s writes to %s: %v", a, stranger, err)
	}
	_, err := s.c.Steer.Steer(s.ctx, steer.Request{ThreadID: below, Message: "hurry", From: a, Person: true})
	s.noError(err)
	list, err := s.c.Threads.Store.Unread(s.ctx, below)
	s.noError(err)
	if len(list) != 1 || list[0].From != (thread.Sender{Kind: thread.ByParent, Name: string(a)}) {
		t.Errorf("%s reads %+v", below, list)
	}
	for _, id := range []thread.ID{root, stranger, a, b} {
		if got := s.unread(id); len(got) > 0 {
			t.Errorf("%s is to read %q", id, got)
		}
	}
}

// TestAttackFloodOfMessages: four servers post messages to one thread without end, and its children write notes. Its queue takes 64 of them, of which at most 48 are notes, and says so to the others.
func TestAttackFloodOfMessages(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	ids := make(chan string, 1000)
	done := make(chan int)
	for n := range 4 {
		c := s.controller()
		go func() {
			posted := 0
			defer func() { done <- posted }()
			for i := range 100 {
				told, err := c.Steer.Steer(s.ctx, steer.Request{ThreadID: root, Message: fmt.Sprintf("%d %d", n, i), By: "flood"})
				if err == nil {
					posted++
					ids <- told.MessageID
				} else if code(err) != tool.CodeConflict {
					t.Error(err)
				}
			}
		}()
	}
	posted := 0
	for range 4 {
		posted += <-done
	}
	list, err := s.c.Threads.Store.Unread(s.ctx, root)
	s.noError(err)
	if posted != store.MaxUnread || len(list) != posted {
		t.Fatalf("%d were posted, %d are there", posted, len(list))
	}
	seen := map[string]bool{}
	for range posted {
		seen[<-ids] = true
	}
	last := map[string]int{}
	for _, m := range list {
		var n, i int
		if _, err := fmt.Sscan(m.Text, &n, &i); err != nil || !seen[m.ID] || i < last[fmt.Sprint(n)] {
			t.Errorf("message %+v behind number %d, %v", m, last[fmt.Sprint(n)], err)
		}
		last[fmt.Sprint(n)] = i
	}
	if _, err := s.c.Steer.Note(s.ctx, steer.NoteRequest{From: child, To: steer.ToParent, Text: "me too"}); code(err) != tool.CodeConflict {
		t.Errorf("a note: %v", err)
	}
}
