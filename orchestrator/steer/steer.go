// Package steer tells threads something while they work: people, clients and the
// threads above them give instructions, threads of one root write each other notes.
// A message stands in the store until the thread reads it, before its next call of a
// model (runtime/loop).
package steer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Steerer tells the threads of a project something.
type Steerer struct {
	Threads  *threads.Threads
	Settings *settings.Source
}

// Request is a message to a thread.
type Request struct {
	ThreadID  thread.ID
	Message   string
	Interrupt bool // break off what is on its way for it
	// By is the client that says it, and Person that a person at a terminal does.
	By     string
	Person bool
	// From is the thread that says it, to one below it only. Empty: whoever calls, or the
	// thread that this process runs in.
	From thread.ID
}

// Steered is the answer to steer_thread.
type Steered struct {
	Success          bool         `json:"success"`
	ThreadID         thread.ID    `json:"thread_id"`
	ResolvedThreadID thread.ID    `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it, which is told"`
	MessageID        string       `json:"message_id"`
	Status           thread.State `json:"status"`
	Position         int          `json:"position" jsonschema:"of the message among those that the thread has not read"`
	ReadWhen         string       `json:"read_when"`
	Interrupts       bool         `json:"interrupts,omitempty"`
	Next             string       `json:"next,omitempty" jsonschema:"what to call next"`
}

// Steer gives a thread an instruction, which it reads before its next call of a model. The
// newest of its chain is told. One that has ended is refused.
func (s *Steerer) Steer(ctx context.Context, req Request) (Steered, error) {
	text, err := plainText(req.Message)
	if err != nil {
		return Steered{}, err
	}
	rec, err := s.Threads.LookAsked(ctx, req.ThreadID)
	if err != nil {
		return Steered{}, threads.Fault(err)
	}
	m := thread.Message{Kind: thread.Steer, From: speaker(req), Text: text, Interrupt: req.Interrupt}
	if req.From == "" {
		req.From = s.Threads.Parent
	}
	if req.From != "" {
		if err := s.Threads.IsBelow(ctx, rec.ThreadID, req.From, "so it cannot be steered from there"); err != nil {
			return Steered{}, err
		}
		m.From = thread.Sender{Kind: thread.ByParent, Name: string(req.From)}
	}
	return s.post(ctx, req.ThreadID, rec, m, store.NoteBound{})
}

// speaker is who steers outside of threads.
func speaker(req Request) thread.Sender {
	if req.Person {
		return thread.Sender{Kind: thread.ByPerson}
	}
	return thread.Sender{Kind: thread.ByClient, Name: thread.PlainName(req.By)}
}

// maxFollowed bounds how often a message follows a thread that hands over just now.
const maxFollowed = 8

// post puts a message into the queue of a thread, or of the one that continues it by
// then.
func (s *Steerer) post(ctx context.Context, asked thread.ID, rec thread.Record, m thread.Message, bound store.NoteBound) (Steered, error) {
	m.ID, m.At = uuid.NewString(), s.Threads.Now()
	for range maxFollowed {
		if err := mayRead(rec); err != nil {
			return Steered{}, err
		}
		m.Reader = rec.ThreadID
		position, err := s.Threads.Store.Post(ctx, m, bound)
		if ended, is := errors.AsType[*store.UnreadableError](err); is && ended.By != "" {
			if rec, err = s.Threads.LookAsked(ctx, ended.By); err != nil {
				return Steered{}, threads.Fault(err)
			}
			continue
		}
		if err != nil {
			return Steered{}, fault(err)
		}
		s.Threads.Log.Info().Str("thread_id", string(rec.ThreadID)).Str("message_id", m.ID).Str("kind", string(m.Kind)).
			Str("by", string(m.From.Kind)).Str("name", m.From.Name).Msg("message posted")
		return s.answer(ctx, asked, rec, m, position), nil
	}
	return Steered{}, tool.Faultf(tool.CodeConflict, "thread %s hands over again and again", asked).WithHint("call again")
}

// answer says when the message will be read.
func (s *Steerer) answer(ctx context.Context, asked thread.ID, rec thread.Record, m thread.Message, position int) Steered {
	a := Steered{
		Success: true, ThreadID: asked, MessageID: m.ID, Status: rec.Status, Position: position, Interrupts: m.Interrupt,
		Next: "get_status of it tells how many messages are unread; read_transcript shows what came of them",
	}
	if rec.ThreadID != asked {
		a.ResolvedThreadID = rec.ThreadID
	}
	a.ReadWhen = s.readWhen(ctx, rec, m)
	return a
}

// interruptWithin is how long it takes at most until a message breaks off what is on its
// way: as often a thread looks at its row.
const interruptWithin = 2 * time.Second

func (s *Steerer) readWhen(ctx context.Context, rec thread.Record, m thread.Message) string {
	open, err := s.Threads.Store.Questions(ctx, store.QuestionFilter{ThreadID: rec.ThreadID, Open: true})
	switch {
	case rec.Queued():
		return "with its first call of the model, when it has a slot to run in"
	case rec.Status == thread.Created:
		return "with its first call of the model"
	case err == nil && len(open) > 0:
		return "with its next call of the model, when its question is answered (approve_thread)"
	case m.Kind == thread.Steer && rec.Yielded:
		return "now: it waits for others, and the wait ends"
	case m.Interrupt:
		return fmt.Sprintf("now: what it does is broken off within %s", interruptWithin)
	}
	return "before its next call of the model; what it does now goes on"
}

// The next steps where a thread has ended.
const (
	resumeHint = "resume_thread with this thread_id and the message goes on with its conversation"
	resumeTry  = "rye-mcp threads resume %s \"MESSAGE\""
)

// mayRead refuses a message for what reads none.
func mayRead(rec thread.Record) error {
	switch {
	case rec.Kind != thread.KindDirective:
		return tool.Faultf(tool.CodeUnsupported, "%s is no thread with a model (it is a %s), so it reads no messages", rec.ThreadID, rec.Kind)
	case rec.Status.Terminal():
		return tool.Faultf(tool.CodeConflict, "thread %s has ended (%s), and reads no message any more", rec.ThreadID, rec.Status).
			With("status", rec.Status).WithHint(resumeHint).WithTry(resumeTry, rec.ThreadID)
	}
	return nil
}

// fault tells a model why a message was not posted.
func fault(err error) error {
	var (
		unreadable *store.UnreadableError
		full       *store.QueueFullError
		notes      *store.NotesError
	)
	switch {
	case errors.As(err, &unreadable) && (unreadable.Stopped || unreadable.Ending):
		return tool.Faultf(tool.CodeConflict, "%w", unreadable).WithHint("wait_threads until it has ended, then resume_thread with the message")
	case errors.As(err, &unreadable):
		return tool.Faultf(tool.CodeConflict, "%w", unreadable).With("status", unreadable.State).
			WithHint(resumeHint).WithTry(resumeTry, unreadable.Thread)
	case errors.As(err, &full):
		return tool.Faultf(tool.CodeConflict, "%w", full).With("unread", full.Unread).
			WithHint("call again when it has read some; one message that says all is better than many")
	case errors.As(err, &notes):
		return tool.Faultf(tool.CodeConflict, "%w", notes).With("notes_per_turn", notes.Notes).With("bytes_per_turn", notes.Bytes).
			WithHint("say the rest in your next turn, or in what you return")
	}
	return threads.Fault(err)
}
