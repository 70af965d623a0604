package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// handoffs is the [store.Handoffs] of a store.
type handoffs struct{ registry Database }

// handoffAsked is the column of that name.
type handoffAsked struct {
	By      string `json:"by"`
	Summary string `json:"summary,omitempty"`
}

// AskHandoff implements [store.Handoffs].
func (s handoffs) AskHandoff(ctx context.Context, id thread.ID, r thread.HandoffRequest) error {
	asked, err := json.Marshal(handoffAsked{r.By, r.Summary})
	if err != nil {
		return fmt.Errorf("ask for a handoff: %w", err)
	}
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		changed, err := changeIn(ctx, tx, `UPDATE threads SET handoff_asked_at = ?1, handoff_asked = ?2, updated_at = CASE WHEN updated_at < ?1 THEN ?1 ELSE updated_at END
			WHERE thread_id = ?3 AND status = 'running' AND cancel_requested_at IS NULL`, millis(r.At), string(asked), id)
		if err != nil || changed {
			return err
		}
		rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, id))
		switch {
		case err != nil:
			return notFound(err, id)
		case rec.Status == thread.Running:
			return fmt.Errorf("thread %s has been asked to stop: %w", id, thread.ErrSettled)
		}
		return fmt.Errorf("thread %s is %s: %w", id, rec.Status, thread.ErrSettled)
	})
	if err != nil {
		return fmt.Errorf("ask for a handoff: %w", err)
	}
	return nil
}

// AskedHandoff implements [store.Handoffs].
func (s handoffs) AskedHandoff(ctx context.Context, id thread.ID) (r *thread.HandoffRequest, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		r = nil
		var (
			at   int64
			text []byte
		)
		row := db.QueryRowContext(ctx, "SELECT coalesce(handoff_asked_at, 0), handoff_asked FROM threads WHERE thread_id = ?", id)
		if err := row.Scan(&at, &text); err != nil {
			return notFound(err, id)
		}
		if at == 0 || len(text) == 0 {
			return nil
		}
		var asked handoffAsked
		if err := json.Unmarshal(text, &asked); err != nil {
			return err
		}
		r = &thread.HandoffRequest{By: asked.By, Summary: asked.Summary, At: fromMillis(at)}
		return nil
	})
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		err = fmt.Errorf("what %s was asked to hand over: %w", id, err)
	}
	return r, err
}
