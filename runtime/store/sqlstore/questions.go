package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// selectQuestion reads what scanQuestion scans, in its order.
const selectQuestion = `SELECT question_id, thread_id, kind, code, text, details, asked_at, deadline_at,
	coalesce(answer, ''), coalesce(answered_by, ''), coalesce(answered_at, 0) FROM questions`

const (
	questionSQL      = selectQuestion + " WHERE question_id = ?"
	questionsSQL     = selectQuestion + " WHERE (?1 = '' OR thread_id = ?1) ORDER BY asked_at, question_id"
	openQuestionsSQL = selectQuestion + " WHERE (?1 = '' OR thread_id = ?1) AND answer IS NULL ORDER BY asked_at, question_id"
)

// questionDetails is the column details.
type questionDetails struct {
	Options []thread.Decision `json:"options"`
	Default thread.Decision   `json:"default"`
	Reached string            `json:"reached,omitempty"`
	Limits  *thread.Limits    `json:"limits,omitempty"`
	Most    *thread.Limits    `json:"most,omitempty"`
	// Proposal is of a handoff.
	Proposal *thread.Proposal `json:"proposal,omitempty"`
}

// answerDetails is the column answer.
type answerDetails struct {
	Decision thread.Decision    `json:"decision"`
	Limits   map[string]float64 `json:"limits,omitempty"`
	Summary  string             `json:"summary,omitempty"`
}

// Ask implements [store.Runner]. It is not waited to disk: after a loss of
// power there is no process that waits.
func (r *runner) Ask(ctx context.Context, q thread.Question) error {
	details, err := json.Marshal(questionDetails{
		Options: q.Options, Default: q.Default, Reached: q.Reached, Limits: q.Limits, Most: q.Most, Proposal: q.Proposal,
	})
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	err = r.registry.Write(ctx, Local, func(ctx context.Context, tx *sql.Tx) error {
		rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, q.ThreadID))
		if err != nil {
			return notFound(err, q.ThreadID)
		}
		if q.ThreadID != r.id || !r.owns(rec.Run) {
			return fenced(q.ThreadID)
		}
		if rec.Status != thread.Running {
			return fmt.Errorf("thread %s is %s: %w", q.ThreadID, rec.Status, thread.ErrSettled)
		}
		asked, err := changeIn(ctx, tx, `INSERT INTO questions (question_id, thread_id, kind, code, text, details, asked_at, deadline_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (question_id) DO NOTHING`,
			q.ID, q.ThreadID, q.Kind, q.Code, q.Text, string(details), millis(q.AskedAt), millis(q.DeadlineAt))
		if err != nil || !asked {
			return err
		}
		_, err = tx.ExecContext(ctx, askedSQL, q.ThreadID, q.ID, millis(q.AskedAt))
		return err
	})
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return nil
}

// Answer implements [store.Questions]. It is on disk when it returns.
func (s *Store) Answer(ctx context.Context, id string, a thread.Answer) (q thread.Question, err error) {
	answer, err := json.Marshal(answerDetails{Decision: a.Decision, Limits: a.Limits, Summary: a.Summary})
	if err != nil {
		return q, fmt.Errorf("answer: %w", err)
	}
	var first bool
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		first, err = changeIn(ctx, tx, `UPDATE questions SET answer = ?, answered_by = ?, answered_at = ?
			WHERE question_id = ? AND answer IS NULL`, string(answer), a.By, millis(a.At), id)
		if err != nil {
			return err
		}
		q, err = scanQuestion(tx.QueryRowContext(ctx, questionSQL, id))
		return noQuestion(err, id)
	})
	if err != nil {
		return q, fmt.Errorf("answer: %w", err)
	}
	if !first {
		return q, fmt.Errorf("answer: %w", &store.AnsweredError{Question: q})
	}
	return q, nil
}

// Question implements [store.Questions].
func (s *Store) Question(ctx context.Context, id string) (q thread.Question, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
		q, err = scanQuestion(db.QueryRowContext(ctx, questionSQL, id))
		return noQuestion(err, id)
	})
	return q, err
}

// Questions implements [store.Questions]. Those that are open are remembered:
// whoever waits for threads looks for them at every commit.
func (s *Store) Questions(ctx context.Context, f store.QuestionFilter) (list []thread.Question, err error) {
	var stored []storedQuestion
	if f.Open {
		stored, err = recallAll(ctx, s.registry, openQuestionsSQL, string(f.ThreadID), scanStoredQuestion)
	} else {
		err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
			rows, err := db.QueryContext(ctx, questionsSQL, f.ThreadID)
			stored, err = scanEach(rows, err, scanStoredQuestion)
			return err
		})
	}
	for _, one := range stored {
		var q thread.Question
		if q, err = one.question(); err != nil {
			break
		}
		list = append(list, q)
	}
	if err != nil {
		return nil, fmt.Errorf("list questions: %w", err)
	}
	return list, nil
}

// storedQuestion is a row as it was read. The rest of the question is still JSON,
// and decoded for each caller, so that nobody gets what another can change.
type storedQuestion struct {
	q               thread.Question // without what follows
	details, answer []byte
	answeredBy      string
	answeredAt      int64
}

func scanStoredQuestion(r row) (storedQuestion, error) {
	var (
		s               storedQuestion
		asked, deadline int64
	)
	q := &s.q
	err := r.Scan(&q.ID, &q.ThreadID, &q.Kind, &q.Code, &q.Text, &s.details, &asked, &deadline, &s.answer, &s.answeredBy, &s.answeredAt)
	if err != nil {
		return storedQuestion{}, err
	}
	q.AskedAt, q.DeadlineAt = fromMillis(asked), fromMillis(deadline)
	return s, nil
}

func (s storedQuestion) question() (thread.Question, error) {
	q := s.q
	var d questionDetails
	if err := json.Unmarshal(s.details, &d); err != nil {
		return thread.Question{}, fmt.Errorf("details of question %s: %w", q.ID, err)
	}
	q.Options, q.Default, q.Limits, q.Most, q.Reached, q.Proposal = d.Options, d.Default, d.Limits, d.Most, d.Reached, d.Proposal
	if len(s.answer) == 0 {
		return q, nil
	}
	var a answerDetails
	if err := json.Unmarshal(s.answer, &a); err != nil {
		return thread.Question{}, fmt.Errorf("answer to question %s: %w", q.ID, err)
	}
	q.Answer = &thread.Answer{Decision: a.Decision, Limits: a.Limits, Summary: a.Summary, By: s.answeredBy, At: fromMillis(s.answeredAt)}
	return q, nil
}

func scanQuestion(r row) (thread.Question, error) {
	s, err := scanStoredQuestion(r)
	if err != nil {
		return thread.Question{}, err
	}
	return s.question()
}

// noQuestion names the question when a query for it found none.
func noQuestion(err error, id string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("question %s: %w", id, store.ErrNoQuestion)
	}
	return err
}
