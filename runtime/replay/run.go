package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/recorded"
	"github.com/rye-mcp/rye-mcp/runtime/loop"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Job is a thread to be replayed.
type Job struct {
	Thread *recording.Thread
	// Meta is what the thread would be started with today.
	Meta thread.Meta
	// Secrets are stand-ins for the values of its secret inputs.
	Secrets map[string]string
	// Store and Records are empty, for this replay alone. Closing the store is the
	// caller's.
	Store   store.Store
	Records records.Records
	// Today is what the loop is given of today: project, spaces, trust, executor,
	// actions, settings, placeholders. Nothing of it may be able to run a tool. The rest
	// is set here.
	Today loop.Deps
}

// Run is what came of a replay.
type Run struct {
	Observed recording.Observed
	// Over says where the recording ended before the thread did; nil: it did not.
	Over *recorded.OverError
	Left int // answers on record that the thread did not come to ask for
	// Turns are the answers that were given.
	Turns int
}

// ErrNothing says that a thread ended before its model had answered anything.
var ErrNothing = errors.New("the thread ended before its model had answered, so there is nothing to replay")

// Again replays a thread.
func Again(ctx context.Context, j Job) (*Run, error) {
	calls, err := callsOf(j.Thread)
	if err != nil {
		return nil, err
	}
	if len(calls) == 0 {
		return nil, ErrNothing
	}
	s, err := open(ctx, j)
	if err != nil {
		return nil, fmt.Errorf("prepare the replay of %s: %w", j.Thread.ThreadID, err)
	}
	s.Today.Resolver = s.Today.Resolver.WithLeft(LeftIn(j.Thread))
	client := recorded.New(calls)
	client.Began = func(c recorded.Call) { s.clock.set(c.At) }
	said, err := s.run(ctx, client)
	if err != nil {
		return nil, err
	}
	return &Run{Observed: recording.Observe(transcript.Events(said)), Over: client.Over(), Left: client.Left(), Turns: len(calls) - client.Left()}, nil
}

// stage is where a thread is replayed.
type stage struct {
	Job
	finisher *finish.Finisher
	clock    *clock
}

func open(ctx context.Context, j Job) (*stage, error) {
	s := &stage{Job: j, clock: &clock{now: j.Thread.Meta.CreatedAt}}
	s.finisher = &finish.Finisher{Store: j.Store, Records: j.Records, Now: s.clock.Now}
	return s, s.furnish(ctx)
}

// furnish puts the thread where a spawner leaves it.
func (s *stage) furnish(ctx context.Context) error {
	m := s.Meta
	rec := thread.Record{
		ThreadID: m.ThreadID, Kind: m.Kind, Directive: m.Directive, Name: m.Directive, Status: thread.Created, Model: m.Model,
		CreatedAt: m.CreatedAt, UpdatedAt: m.CreatedAt, LastUsed: m.CreatedAt, QueuedAt: m.CreatedAt, AdmittedAt: m.CreatedAt,
	}
	budget := &store.Budget{ThreadID: m.ThreadID, MaxSpend: m.Limits.Spend, Active: true, CreatedAt: m.CreatedAt, UpdatedAt: m.CreatedAt}
	done, err := s.Store.Restore(ctx, []store.Restored{{Record: rec, Budget: budget}})
	if err != nil {
		return err
	}
	for _, refused := range done.Refused {
		return refused.Err
	}
	left := s.finisher.Records.Of(m.ThreadID)
	if err := left.Prepare(); err != nil {
		return err
	}
	for name, content := range s.Thread.Artifacts {
		hash, _, _ := strings.Cut(name, ".")
		if _, err := left.Artifacts().Write(hash, content); err != nil {
			return err
		}
	}
	if err := s.seed(left); err != nil {
		return err
	}
	return left.Meta().Write(m)
}

// seed gives a thread that continues another what it was given of the conversation.
func (s *stage) seed(left records.Thread) error {
	if s.Meta.Continuation == nil {
		return nil
	}
	messages, err := transcript.Messages(s.Thread.Source(), left.Artifacts())
	if err != nil {
		return err
	}
	if len(messages) < s.Meta.Continuation.Messages {
		return fmt.Errorf("it continues %d messages, and its transcript has %d", s.Meta.Continuation.Messages, len(messages))
	}
	w, err := s.finisher.OpenTranscript(s.Meta.ThreadID, "")
	if err != nil {
		return err
	}
	continued := transcript.ThreadContinued{
		PreviousThreadID: s.Meta.ContinuationOf, Via: s.Meta.Continuation.Via, Counted: transcript.CountedBefore(s.Thread.Source()),
	}
	return errors.Join(w.Seed(continued, messages[:s.Meta.Continuation.Messages]), w.Close())
}

// run runs the thread to its end, and returns what was said.
func (s *stage) run(ctx context.Context, client llm.Client) (records.Source, error) {
	d, id := s.Today, s.Meta.ThreadID
	w, err := s.finisher.OpenTranscript(id, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	facts, err := newFacts(s.Thread)
	if err != nil {
		return nil, err
	}
	d.ID, d.Store, d.Runner, d.Finisher, d.Transcript = id, s.Store, s.Store.Runner(id, ""), s.finisher, w
	d.Recorded, d.Providers, d.Successors = facts, models{client, s.Thread}, successors{s.Thread}
	d.StopChildren = func(context.Context, thread.ID) error { return nil }
	d.Settings.ToolConcurrency = 1 // results come in the order of the calls
	d.Secrets, d.Now, d.Log = secret.New(s.Secrets), s.clock.Now, zerolog.Nop()
	if _, err := loop.Run(ctx, d); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return s.finisher.Records.Of(id).Transcript(), nil
}

// clock tells the times of the recording.
type clock struct{ now time.Time }

// Now is when the call of the model was answered that the replay has come to.
func (c *clock) Now() time.Time { return c.now }

func (c *clock) set(to time.Time) {
	if to.After(c.now) {
		c.now = to
	}
}
