package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// A remembered row is never older than the last commit, whichever process and
// connection made it.
func TestRememberedRowsAreCurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, theirs := open(t, dir, Options{}), open(t, dir, Options{})
	id := running(t, ours, "d", "")
	if err := ours.OpenRoot(t.Context(), id, 1000, testTime); err != nil {
		t.Fatal(err)
	}
	for turn := 1; turn <= 6; turn++ {
		from := ours
		if turn%2 == 0 {
			from = theirs
		}
		if err := storetest.As(from).RecordCost(t.Context(), id, thread.Cost{Turns: turn}, 0); err != nil {
			t.Fatal(err)
		}
		if err := storetest.As(from).Report(t.Context(), id, thread.Micros(turn), testTime); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from memory
			wantRemembered(t, ours, id, turn)
			wantRemembered(t, theirs, id, turn)
		}
	}
}

// A thread remembers its own writes as another reader finds them, and does not read them
// again as long as nobody else commits.
func TestOwnWritesAreRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, theirs := open(t, dir, unpolled), open(t, dir, unpolled)
	n := newThread("d", "")
	n.Run = "ours"
	id := mustRegister(t, ours, n)
	r := ours.Runner(id, n.Run)
	if _, err := r.Apply(t.Context(), store.Claimed(id, thread.Process{PID: 1, Host: "h"}, testTime)); err != nil {
		t.Fatal(err)
	}
	if err := ours.OpenRoot(t.Context(), id, 1000, testTime); err != nil {
		t.Fatal(err)
	}
	steps := map[string]func(n int) error{
		"pledge": func(n int) error {
			return r.Pledge(t.Context(), thread.Micros(n), testTime.Add(time.Duration(n)*time.Second))
		},
		"report": func(n int) error {
			return r.Report(t.Context(), thread.Micros(n), testTime.Add(time.Duration(n)*time.Second))
		},
		"cost": func(n int) error {
			return r.RecordCost(t.Context(), thread.Cost{Turns: n, InputTokens: 2, OutputTokens: 3, CacheReadTokens: 4, CacheWriteTokens: 5, Spend: 6}, int64(n))
		},
		"child": func(n int) error {
			return theirs.Reserve(t.Context(), thread.ID(fmt.Sprint("child-", n)), id, 1, testTime)
		},
		"cancel": func(int) error { _, err := theirs.RequestCancel(t.Context(), id, "", testTime); return err },
	}
	last := ""
	rapid.Check(t, func(rt *rapid.T) {
		step := rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(rt, "step")
		amount := rapid.IntRange(0, 100).Draw(rt, "amount")
		if err := steps[step](amount); err != nil && step != "child" {
			rt.Fatal(err)
		}
		remembered := false
		for _, answer := range ours.ledger.rows.answers {
			b, isBudget := answer.(store.Budget)
			remembered = remembered || isBudget && b.ThreadID == id
		}
		if last == "report" && step == "pledge" && !remembered {
			rt.Error("a budget that only this process has changed is to be read again")
		}
		last = step
		rec, recErr := ours.Get(t.Context(), id)
		row, rowErr := ours.Budget(t.Context(), id)
		wantRec, wantRow := fromFile(t, ours, id)
		if recErr != nil || rowErr != nil || !reflect.DeepEqual(rec, wantRec) || row != wantRow {
			rt.Errorf("after %s:\n%+v\n%+v\nwant\n%+v\n%+v\n%v", step, rec, row, wantRec, wantRow, errors.Join(recErr, rowErr))
		}
	})
}

// fromFile reads what is in the databases, whatever is remembered.
func fromFile(t *testing.T, s *Store, id thread.ID) (rec thread.Record, row store.Budget) {
	t.Helper()
	fresh, err := Open(t.Context(), s.dir, unpolled)
	if err != nil {
		t.Fatal(err)
	}
	rec, recErr := fresh.Get(t.Context(), id)
	row, rowErr := fresh.Budget(t.Context(), id)
	if err := errors.Join(recErr, rowErr, fresh.Close()); err != nil {
		t.Fatal(err)
	}
	return rec, row
}

func wantRemembered(t *testing.T, s *Store, id thread.ID, turn int) {
	t.Helper()
	rec, err := s.Get(t.Context(), id)
	if err != nil || rec.Cost.Turns != turn {
		t.Errorf("the row has %d turns, %v; want %d", rec.Cost.Turns, err, turn)
	}
	row, err := s.Budget(t.Context(), id)
	if err != nil || row.Actual != thread.Micros(turn) {
		t.Errorf("the budget has %s, %v; want %d", row.Actual, err, turn)
	}
	top, sum, err := s.Tree(t.Context(), id)
	if err != nil || top != row || sum != (store.TreeSpend{Actual: row.Actual, Threads: 1, Active: 1}) {
		t.Errorf("the tree has %+v above %+v, %v", top, sum, err)
	}
}

// A row is read once between two commits, and what is remembered does not grow without end.
func TestRowCacheKeepsAnswers(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	id := running(t, s, "d", "")
	reads := 0
	for range 3 {
		const query = "SELECT directive FROM threads WHERE thread_id = ?"
		if _, err := recallText(t, s, query, string(id), func() { reads++ }); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 1 {
		t.Errorf("an unchanged row was read %d times", reads)
	}
	for i := range 2 * maxAnswers {
		if _, err := recallText(t, s, "SELECT ?", fmt.Sprint(i), func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if kept := len(s.registry.rows.answers); kept > maxAnswers {
		t.Errorf("%d answers are kept", kept)
	}
}

// recallText recalls a text, and says when it is read.
func recallText(t *testing.T, s *Store, query, param string, reads func()) (any, error) {
	t.Helper()
	q := sqlstore.Question{Query: query, Param: param}
	return s.registry.Recall(t.Context(), q, func(ctx context.Context, conn *sql.Conn) (any, error) {
		reads()
		var text string
		err := conn.QueryRowContext(ctx, query, param).Scan(&text)
		return text, err
	})
}

// After an error nothing of before is remembered.
func TestRowCacheAfterAnError(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	id := running(t, s, "d", "")
	if _, err := s.Get(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := recallText(t, s, "SELECT nonsense", string(id), func() {}); err == nil {
		t.Fatal("nonsense has an answer")
	}
	if kept := len(s.registry.rows.answers); kept != 0 {
		t.Errorf("%d answers are kept", kept)
	}
	if rec, err := s.Get(t.Context(), id); err != nil || rec.ThreadID != id {
		t.Errorf("got %v, %v", rec.ThreadID, err)
	}
}

// A caller may change the record that it got: the next one, who may get the same
// answer from memory, does not see that.
func TestRecordsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	id := running(t, s, "d", "")
	outcome := thread.Outcome{
		State: thread.Error, Outputs: map[string]any{"list": []any{"a"}}, Warnings: []string{"w"},
		Error: &thread.Problem{Code: "c", Message: "m"},
	}
	change, err := store.Finished(id, outcome, &thread.Cost{}, testTime)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.As(s).Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	first, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	first.Outcome.Outputs["list"].([]any)[0] = "changed"
	first.Outcome.Warnings[0], first.Outcome.Error.Message = "changed", "changed"
	for i := range first.Metadata {
		first.Metadata[i] = 'x'
	}
	again, err := s.Get(t.Context(), id)
	if err != nil || !reflect.DeepEqual(*again.Outcome, outcome) || strings.Contains(string(again.Metadata), "x") {
		t.Errorf("got %+v and metadata %s, %v; want %+v", again.Outcome, again.Metadata, err, outcome)
	}
}

// A caller who has given up gets no answer, as from every other read, and costs the
// next one nothing.
func TestRowCacheOfACancelledRead(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	id := running(t, s, "d", "")
	for _, known := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Get(ctx, id); !errors.Is(err, context.Canceled) {
			t.Errorf("known %t: got %v", known, err)
		}
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Errorf("known %t: after it: %v", known, err)
		}
	}
}

// However many read beside the writers, nobody gets a row that is older than a
// commit that had returned when the read began.
func TestRowsAreCurrentUnderLoad(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const turns, readers = 60, 4
	dir := t.TempDir()
	stores := []*Store{open(t, dir, Options{}), open(t, dir, Options{})}
	ids := []thread.ID{running(t, stores[0], "d", ""), running(t, stores[1], "d", "")}
	var committed [2]atomic.Int64
	var writing, reading sync.WaitGroup
	for i, id := range ids {
		writing.Go(func() {
			for turn := 1; turn <= turns; turn++ {
				if err := storetest.As(stores[i]).RecordCost(t.Context(), id, thread.Cost{Turns: turn}, 0); err != nil {
					t.Error(err)
				}
				committed[i].Store(int64(turn))
			}
		})
	}
	done := make(chan struct{})
	for r := range readers {
		reading.Go(func() {
			for i := 0; ; i = 1 - i {
				least := committed[i].Load()
				rec, err := stores[r%2].Get(t.Context(), ids[i])
				if err != nil || int64(rec.Cost.Turns) < least {
					t.Errorf("got %d turns, %v, after %d were committed", rec.Cost.Turns, err, least)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
}

// The next answer has all that another process has said it committed, although the
// row was in memory before.
func TestRowsOfOtherProcessesAreCurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if err := s.OpenRoot(t.Context(), "root", 1_000_000, testTime); err != nil {
		t.Fatal(err)
	}
	p := shared.Start(t, "spend", dir, "root", "1", "60")
	p.GoAhead(t)
	said := make(map[thread.ID]thread.Micros)
	for line := p.Line(); line != ""; line = p.Line() {
		crowdtest.Hear(t, said, line)
		for id, total := range said {
			if b, err := s.Budget(t.Context(), id); err != nil || b.Own < total {
				t.Errorf("%s has spent %s, %v; the other process said %s", id, b.Own, err, total)
			}
		}
	}
	p.AwaitEnd(t, false)
	if len(said) == 0 {
		t.Error("the other process has spent nothing")
	}
}

// Remembered outcomes have no more than their room together, and one that
// is longer is not kept.
func TestRowCacheForgetsLongOutcomes(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), Options{})
	m := &s.registry.rows
	for i, size := range []int{maxAnswerBytes / 2, maxAnswerBytes / 2, maxAnswerBytes / 2, 2 * maxAnswerBytes, 1} {
		q := sqlstore.Question{Query: "SELECT", Param: fmt.Sprint(i)}
		read := func(context.Context, *sql.Conn) (any, error) { return sized(size), nil }
		if _, err := s.registry.Recall(t.Context(), q, read); err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, answer := range m.answers {
			kept += rowBytes(answer)
		}
		if kept != m.kept || kept > maxAnswerBytes {
			t.Errorf("after %d: %d bytes are kept, counted as %d", i, kept, m.kept)
		}
	}
	if len(m.answers) != 1 {
		t.Errorf("%d answers are kept, want the last one", len(m.answers))
	}
}

// sized is an answer of so many bytes.
type sized int

func (s sized) Size() int { return int(s) }

func recordTurns(t *testing.T, s *Store, id thread.ID, turns int) {
	t.Helper()
	if err := storetest.As(s).RecordCost(t.Context(), id, thread.Cost{Turns: turns}, 0); err != nil {
		t.Fatal(err)
	}
}

// wantTurns reads a row twice, the second time from memory.
func wantTurns(t *testing.T, s *Store, id thread.ID, turns int) {
	t.Helper()
	for range 2 {
		if rec, err := s.Get(t.Context(), id); err != nil || rec.Cost.Turns != turns {
			t.Errorf("the row has %d turns, %v; want %d", rec.Cost.Turns, err, turns)
		}
	}
}

// TestRowsThatStrangersChange: a commit that nobody counts is in what is read when
// the time of trust is over, and until then what is remembered may be told.
func TestRowsThatStrangersChange(t *testing.T) {
	t.Parallel()
	for _, poll := range []time.Duration{time.Millisecond, time.Hour} {
		t.Run(poll.String(), func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), Options{Poll: poll})
			id := running(t, s, "d", "")
			recordTurns(t, s, id, 1)
			wantTurns(t, s, id, 1)
			if err := beside(t, s.registry, "UPDATE threads SET turns = 2"); err != nil {
				t.Fatal(err)
			}
			turns := 1
			for turns == 1 && poll < time.Hour {
				rec, err := s.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				turns = rec.Cost.Turns
			}
			wantTurns(t, s, id, turns)
			recordTurns(t, s, running(t, s, "other", ""), 1)
			wantTurns(t, s, id, 2)
		})
	}
}
