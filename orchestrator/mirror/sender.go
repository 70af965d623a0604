package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Sender sends the threads that are due. One process of a project does at a time.
type Sender struct {
	*Mirror
	Outbox Outbox
	Rest   Rest
	// Lease takes the right to send, or returns an error wrapping [life.ErrHeld].
	Lease func(context.Context) (life.Hold, error)
	Now   func() time.Time
	// Wait waits, or returns the cause of the context's end.
	Wait func(context.Context, time.Duration) error
	// Whole has all states written anew.
	Whole bool
	// Lingers has the sender wait for the next turns of threads that live, so that not each
	// turn of theirs starts a process.
	Lingers bool
}

const (
	// attempts is how often a server that cannot be reached is tried, and firstDelay what is
	// waited behind the first failure; it doubles.
	attempts   = 6
	firstDelay = time.Second
	// attemptsOfOne is how often a thread is tried that the server has trouble with, and
	// mostFailed how many of them after each other say that it is the server.
	attemptsOfOne = 2
	mostFailed    = 3
	// lookEvery and looks are how a sender waits for the next turn.
	lookEvery = 250 * time.Millisecond
	looks     = 40
)

// ErrLeft says that something stays due for the next sender.
var ErrLeft = errors.New("what is due is left for the next sender")

// Sent is what a sender has done.
type Sent struct {
	Threads int // whose copies are what the threads are
	Left    int // that stay due: a run is at work on them there, or the server has trouble with them
	Refused int // that the server will not take
}

// Run sends until nothing is due. Where another process sends the error wraps
// [life.ErrHeld].
func (s *Sender) Run(ctx context.Context) (sum Sent, err error) {
	var last Sent
	send := func() (err error) {
		last, err = s.whileDue(ctx)
		sum.add(last)
		if !errors.Is(err, life.ErrHeld) && ctx.Err() == nil {
			err = errors.Join(err, s.tried(ctx, err))
		}
		return err
	}
	err = due.Drain(func() (life.Hold, error) { return s.Lease(ctx) }, send, func() (bool, error) { return s.isMore(ctx, last) })
	return sum, err
}

// tried keeps how an attempt went, for the next one and for people.
func (s *Sender) tried(ctx context.Context, err error) error {
	failure := failureOf(err)
	if failure == "" {
		s.Rest.End()
	} else if err := s.Rest.Longer(s.Now(), failure); err != nil {
		return err
	}
	return s.Outbox.Tried(ctx, failure)
}

// failureOf is an error in words that other machines may read: without the server's address,
// and without what it says.
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	failed, is := errors.AsType[*langgraph.Error](err)
	switch {
	case is && failed.Status != 0:
		return fmt.Sprintf("%v (HTTP %d)", failed.Fact, failed.Status)
	case is:
		return failed.Fact.Error()
	}
	return "an error that mirror.log of the machine that sends tells"
}

func (s *Sent) add(more Sent) {
	s.Threads, s.Refused, s.Left = s.Threads+more.Threads, s.Refused+more.Refused, more.Left
}

// isMore reports whether more is due than was left.
func (s *Sender) isMore(ctx context.Context, sent Sent) (bool, error) {
	due, err := s.Outbox.List(ctx)
	return len(due) > sent.Left, err
}

// whileDue sends what is due, and what becomes due while threads live.
func (s *Sender) whileDue(ctx context.Context) (sum Sent, err error) {
	for {
		sent, lives, err := s.drain(ctx)
		sum.add(sent)
		if err != nil || !lives || !s.Lingers {
			return sum, err
		}
		if more, err := s.linger(ctx, sent); err != nil || !more {
			return sum, err
		}
	}
}

// linger waits for the next turn of a thread, and reports whether there was one.
func (s *Sender) linger(ctx context.Context, sent Sent) (more bool, err error) {
	for range looks {
		if err := s.Wait(ctx, lookEvery); err != nil {
			return false, err
		}
		if more, err := s.isMore(ctx, sent); err != nil || more {
			return more, err
		}
	}
	return false, nil
}

// drain sends what is due now, and reports whether one of the threads may change again.
func (s *Sender) drain(ctx context.Context) (sum Sent, lives bool, err error) {
	due, err := s.Outbox.List(ctx)
	if err != nil {
		return sum, false, err
	}
	var failed []error
	inARow := 0
	for _, id := range due {
		alive, err := s.deliver(ctx, id)
		lives = lives || alive
		switch {
		case err == nil:
			sum.Threads, inARow = sum.Threads+1, 0
		case errors.Is(err, langgraph.ErrRefused):
			sum.Refused++
			s.Log.Warn().Err(err).Str("thread_id", string(id)).Msg("mirror: the server refuses the thread; it is sent again when it changes")
		case errors.Is(err, langgraph.ErrBusy):
			sum.Left++
			s.Log.Info().Str("thread_id", string(id)).Msg("mirror: a run is at work on the thread there; it stays due")
			continue
		default:
			sum.Left++
			// One thread that the server has trouble with must not keep the others.
			inARow++
			if failed = append(failed, fmt.Errorf("%s: %w", id, err)); !isOfOne(err) || inARow == mostFailed {
				return sum, lives, fmt.Errorf("%w: %w", ErrLeft, errors.Join(failed...))
			}
			continue
		}
		switch mine, err := s.Outbox.Sent(ctx, id); {
		case err != nil:
			return sum, lives, err
		case !mine:
			return sum, lives, fmt.Errorf("another machine sends by now: %w", life.ErrHeld)
		}
	}
	if sum.Threads > 0 {
		s.Log.Info().Int("threads", sum.Threads).Msg("mirror: sent")
	}
	if len(failed) > 0 {
		err = fmt.Errorf("%w: %w", ErrLeft, errors.Join(failed...))
	}
	return sum, lives, err
}

// isOfOne reports whether an error may be about one thread alone.
func isOfOne(err error) bool {
	failed, is := errors.AsType[*langgraph.Error](err)
	return is && (failed.Status == http.StatusInternalServerError || errors.Is(err, langgraph.ErrNonsense) || errors.Is(err, langgraph.ErrNotFound))
}

// deliver sends one thread, again while the server cannot be reached.
func (s *Sender) deliver(ctx context.Context, id thread.ID) (lives bool, err error) {
	if err := s.Outbox.Take(ctx, id); err != nil {
		return false, err
	}
	s.Crashpoints.At(CrashTaken)
	delay := firstDelay
	for attempt := 1; ; attempt++ {
		lives, err = s.Send(ctx, id, s.Whole)
		if !errors.Is(err, langgraph.ErrUnreachable) || attempt >= attempts || isOfOne(err) && attempt >= attemptsOfOne {
			return lives, err
		}
		after := delay
		if failed, is := errors.AsType[*langgraph.Error](err); is {
			after = max(after, failed.After)
		}
		if err := s.Wait(ctx, after); err != nil {
			return lives, err
		}
		delay *= 2
	}
}
