package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// Bounds of what is remembered. A row has the whole outcome of a thread, which can be
// megabytes.
const (
	maxAnswers     = 64
	maxAnswerBytes = 8 << 20 // of outcomes
)

// rowCache remembers answers to questions about one thread until somebody commits.
// Only what runs in [sharedfile.View.Look], or learns of an update, uses it, one at a
// time.
type rowCache struct {
	state   uint64 // in which the answers were read, see [sharedfile.Seen]
	answers map[sqlstore.Question]any
	kept    int // bytes of the outcomes in them
}

// lookUp returns what is remembered in the state that the file is seen in, or else what
// is read.
func (c *rowCache) lookUp(
	ctx context.Context, now sharedfile.Seen, q sqlstore.Question, read func(context.Context, *sql.Conn) (any, error),
) (answer any, err error) {
	defer func() {
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			c.forget()
		}
	}()
	c.turnTo(now.State)
	if known, ok := c.answers[q]; ok {
		return known, nil
	}
	conn, err := now.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if answer, err = read(ctx, conn); err != nil {
		return nil, err
	}
	c.keep(q, answer)
	return answer, nil
}

// learn remembers the row that an update has changed as it is now, where it was
// remembered before.
func (c *rowCache) learn(before, now sharedfile.Seen, u sqlstore.Update) {
	c.turnTo(before.State)
	known, ok := c.answers[u.Of]
	c.turnTo(now.State)
	if ok {
		c.keep(u.Of, u.Change(known))
	}
}

func (c *rowCache) keep(q sqlstore.Question, answer any) {
	size := rowBytes(answer)
	if len(c.answers) >= maxAnswers || c.kept+size > maxAnswerBytes {
		c.forget()
	}
	if size <= maxAnswerBytes {
		c.answers[q] = answer
		c.kept += size
	}
}

func (c *rowCache) forget() {
	clear(c.answers)
	c.kept = 0
}

// rowBytes is how long the texts of an answer are that have no bound of their own.
func rowBytes(answer any) int {
	if long, ok := answer.(sqlstore.Sized); ok {
		return long.Size()
	}
	return 0
}

// turnTo forgets what was read in another state.
func (c *rowCache) turnTo(state uint64) {
	if c.state == state {
		return
	}
	if c.answers == nil {
		c.answers = map[sqlstore.Question]any{}
	}
	c.forget()
	c.state = state
}
