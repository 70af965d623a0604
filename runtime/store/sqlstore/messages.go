package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// messages is the [store.Messages] of a store.
type messages struct{ registry Database }

// Post implements [store.Messages]. The message is on disk when it returns.
func (s messages) Post(ctx context.Context, m thread.Message, bound store.NoteBound) (unread int, err error) {
	if len(m.Text) == 0 || len(m.Text) > store.MaxMessageBytes {
		return 0, fmt.Errorf("post: %w, and this one has %d", store.ErrNoText, len(m.Text))
	}
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, m.Reader))
		if err != nil {
			return notFound(err, m.Reader)
		}
		if err := canRead(rec, m); err != nil {
			return err
		}
		ending, err := readsNoMore(ctx, tx, rec.ThreadID, rec.Run)
		if err != nil {
			return err
		}
		if ending {
			return &store.UnreadableError{Thread: rec.ThreadID, State: rec.Status, Ending: true}
		}
		turn, err := noteTurn(ctx, tx, m, bound)
		if err != nil {
			return err
		}
		unread = rec.Unread + 1
		_, err = tx.ExecContext(ctx, `INSERT INTO messages
			(message_id, thread_id, kind, sender_kind, sender, sender_turn, text, bytes, interrupt, posted_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			m.ID, m.Reader, m.Kind, m.From.Kind, m.From.Name, turn, m.Text, len(m.Text), m.Interrupt, millis(m.At))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("post: %w", err)
	}
	return unread, nil
}

// canRead refuses a message for a thread that will not read it, or has too many.
func canRead(rec thread.Record, m thread.Message) error {
	stopped := !rec.CancelRequestedAt.IsZero()
	if rec.Status.Terminal() || stopped {
		return &store.UnreadableError{
			Thread: rec.ThreadID, State: rec.Status, By: rec.ContinuationThreadID, Stopped: stopped && !rec.Status.Terminal(),
		}
	}
	most := store.MaxUnread
	switch {
	case m.Kind == thread.Note:
		most = store.MaxUnreadNotes
	case m.From.Kind == thread.ByPerson:
		most = store.MaxUnreadPerson
	}
	if rec.Unread >= most {
		return &store.QueueFullError{Thread: rec.ThreadID, Unread: rec.Unread}
	}
	return nil
}

// noteTurn is the turn that the sender of a note is in, in which it must not have
// written too much; 0 for other messages.
func noteTurn(ctx context.Context, tx *sql.Tx, m thread.Message, bound store.NoteBound) (turn int, err error) {
	if m.Kind != thread.Note {
		return 0, nil
	}
	var notes, bytes int
	err = tx.QueryRowContext(ctx, "SELECT turns FROM threads WHERE thread_id = ?", m.From.Name).Scan(&turn)
	if err != nil {
		return 0, notFound(err, thread.ID(m.From.Name))
	}
	err = tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(bytes), 0) FROM messages
		WHERE sender = ? AND sender_turn = ? AND kind = 'note'`, m.From.Name, turn).Scan(&notes, &bytes)
	if err != nil {
		return 0, err
	}
	if notes >= bound.Notes || bytes+len(m.Text) > bound.Bytes {
		return 0, &store.NotesError{Sender: thread.ID(m.From.Name), NoteBound: bound}
	}
	return turn, nil
}

const unreadSQL = `SELECT message_id, kind, thread_id, sender_kind, sender, text, interrupt, posted_at FROM messages
	WHERE thread_id = ? AND delivered_at IS NULL ORDER BY seq`

func scanMessage(r row) (m thread.Message, err error) {
	var at int64
	err = r.Scan(&m.ID, &m.Kind, &m.Reader, &m.From.Kind, &m.From.Name, &m.Text, &m.Interrupt, &at)
	m.At = fromMillis(at)
	return m, err
}

// Unread implements [store.Messages].
func (s messages) Unread(ctx context.Context, reader thread.ID) (list []thread.Message, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, unreadSQL, reader)
		list, err = scanEach(rows, err, scanMessage)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("unread messages of %s: %w", reader, err)
	}
	return list, nil
}

// endedSQL follows each thread to the last of its chain, in the order in which they were
// asked for. A chain in a circle ends nowhere, and is left out.
const endedSQL = `WITH RECURSIVE last (place, asked, thread_id) AS (
		SELECT CAST(asked.key AS BIGINT), t.thread_id, t.thread_id FROM json_each(?1) asked JOIN threads t ON t.thread_id = asked.value
		UNION SELECT l.place, l.asked, t.continuation_thread_id FROM last l JOIN threads t ON t.thread_id = l.thread_id
			WHERE t.continuation_thread_id IS NOT NULL AND t.status = 'continued')
	SELECT asked, ` + columns + ` FROM last JOIN threads USING (thread_id)
	WHERE status IN ('completed', 'error', 'cancelled') ORDER BY place`

// storedEnd is an [store.Ended] as it was read.
type storedEnd struct {
	asked  thread.ID
	stored storedRecord
}

// behindID scans a row behind an id.
type behindID struct {
	row
	id *thread.ID
}

// Scan implements row.
func (b behindID) Scan(dest ...any) error { return b.row.Scan(append([]any{b.id}, dest...)...) }

// Ended implements [store.Messages].
func (s messages) Ended(ctx context.Context, ids []thread.ID) (ended []store.Ended, err error) {
	found, err := recallAll(ctx, s.registry, endedSQL, jsonList(ids), func(r row) (e storedEnd, err error) {
		e.stored, err = scanStored(behindID{r, &e.asked})
		return e, err
	})
	for _, e := range found {
		var rec thread.Record
		if rec, err = e.stored.record(); err != nil {
			break
		}
		ended = append(ended, store.Ended{Asked: e.asked, Record: rec})
	}
	if err != nil {
		return nil, fmt.Errorf("which threads have ended: %w", err)
	}
	return ended, nil
}

// Deliver implements [store.Messages].
func (s messages) Deliver(ctx context.Context, reader thread.ID, run thread.Run, ids []string, at time.Time) error {
	err := s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, reader))
		if err != nil {
			return notFound(err, reader)
		}
		if !(&runner{run: run}).owns(rec.Run) {
			return fenced(reader)
		}
		_, err = tx.ExecContext(ctx, `UPDATE messages SET delivered_at = ?, text = ''
			WHERE thread_id = ? AND delivered_at IS NULL AND message_id IN (SELECT value FROM json_each(?))`,
			millis(at), reader, jsonList(ids))
		return err
	})
	if err != nil {
		return fmt.Errorf("deliver messages: %w", err)
	}
	return nil
}

// lastMessage is the id of the message with which a run stops reading: a row of its own,
// read already, that says nothing. Another run of the thread has another one.
func lastMessage(reader thread.ID, run thread.Run) string {
	return fmt.Sprintf("end of %s %s", reader, run)
}

func readsNoMore(ctx context.Context, tx *sql.Tx, reader thread.ID, run thread.Run) (is bool, err error) {
	var found int
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM messages WHERE message_id = ?", lastMessage(reader, run)).Scan(&found)
	return found > 0, err
}

// EndReading implements [store.Messages]. It is not waited to disk: after a loss of power the
// run is over too.
func (s messages) EndReading(ctx context.Context, reader thread.ID, run thread.Run, whatever bool, at time.Time) (ended bool, err error) {
	err = s.registry.Write(ctx, Relaxed, func(ctx context.Context, tx *sql.Tx) error {
		rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, reader))
		if err != nil {
			return notFound(err, reader)
		}
		if !(&runner{run: run}).owns(rec.Run) {
			return fenced(reader)
		}
		if ended, err = readsNoMore(ctx, tx, reader, rec.Run); ended || err != nil {
			return err
		}
		if ended, err = mayEnd(ctx, tx, rec, whatever); !ended || err != nil {
			return err
		}
		// Triggers count what is posted and what is read, so the row goes through both.
		_, err = tx.ExecContext(ctx, `INSERT INTO messages (message_id, thread_id, kind, sender_kind, text, bytes, posted_at)
			VALUES (?, ?, ?, ?, '.', 1, ?)`, lastMessage(reader, rec.Run), reader, thread.Steer, thread.ByParent, millis(at))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE messages SET delivered_at = ?, text = '' WHERE message_id = ?", millis(at), lastMessage(reader, rec.Run))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("end reading: %w", err)
	}
	return ended, nil
}

// mayEnd reports whether a thread can stop reading: with an instruction that is unread it
// cannot, unless whatever says so.
func mayEnd(ctx context.Context, tx *sql.Tx, rec thread.Record, whatever bool) (bool, error) {
	if whatever || rec.Unread == 0 {
		return true, nil
	}
	var steers int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM messages WHERE thread_id = ? AND delivered_at IS NULL AND kind = ?", rec.ThreadID, thread.Steer).Scan(&steers)
	return steers == 0, err
}

// passOnMessages gives what a thread has not read to the one that continues it.
func passOnMessages(ctx context.Context, tx *sql.Tx, from, to thread.ID) error {
	_, err := tx.ExecContext(ctx, "UPDATE messages SET thread_id = ? WHERE thread_id = ? AND delivered_at IS NULL", to, from)
	return err
}
