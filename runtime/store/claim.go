package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Candidate is an id that no row had when it was looked for, or the thread that the
// request key names.
type Candidate struct {
	ID      thread.ID
	Ordinal int // see NewThread
	Known   *thread.Record
}

// maxTries bounds the candidates offered to one claim function.
const maxTries = 1000

// Register claims an id and then registers a thread under it. Claim takes what belongs
// to a candidate outside the store, its place and its life, before the row is there: a
// row is never visible whose life is free. With ErrTaken the next candidate is tried,
// and so it is where another thread has taken the id meanwhile; the caller lets go of the
// claim before then, and of the last one with an error or when nothing was created. A
// nil claim claims nothing.
func Register(ctx context.Context, r Registry, n NewThread, claim func(thread.ID) error) (rec thread.Record, created bool, err error) {
	for range maxTries {
		c, err := r.Candidate(ctx, n)
		if err != nil {
			return thread.Record{}, false, err
		}
		if c.Known != nil {
			return *c.Known, false, nil
		}
		this := n
		this.ID, this.Ordinal = c.ID, c.Ordinal
		if claim != nil {
			err = claim(c.ID)
		}
		if err != nil {
			err = fmt.Errorf("claim %s: %w", c.ID, err)
		} else {
			rec, created, err = r.Register(ctx, this)
		}
		if !errors.Is(err, ErrTaken) || c.Ordinal == 0 {
			return rec, created, err
		}
		n.Ordinal = c.Ordinal
	}
	return thread.Record{}, false, fmt.Errorf("register thread: %d ids up to %s: %w", maxTries, thread.NewID(n.Directive, n.Now, n.Ordinal), ErrTaken)
}

// Admit gives a slot to the first thread in the queue that claim takes, which takes what
// its runner needs outside the store. With ErrTaken the next one is tried, any other
// error aborts. It is called again with another thread where somebody was faster: the
// caller lets go of the claim before then, and of the last one when none was admitted.
func Admit(
	ctx context.Context, q Queue, slots int, at time.Time, run thread.Run, claim func(thread.Record) error,
) (rec thread.Record, admitted bool, err error) {
	for behind := (QueuePlace{}); !admitted; {
		var next thread.Record
		next, behind, err = q.Next(ctx, slots, behind)
		if err != nil || next.ThreadID == "" {
			return thread.Record{}, false, err
		}
		switch err := claim(next); {
		case errors.Is(err, ErrTaken):
			continue
		case err != nil:
			return thread.Record{}, false, fmt.Errorf("claim %s: %w", next.ThreadID, err)
		}
		if rec, admitted, err = q.Admit(ctx, next.ThreadID, slots, at, run); err != nil {
			return thread.Record{}, false, err
		}
	}
	return rec, true, nil
}
