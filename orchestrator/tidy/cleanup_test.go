package tidy_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// clean cleans up as a person does who has agreed.
func (s *scene) clean(req tidy.CleanupRequest) tidy.Cleaned {
	s.Helper()
	req.Agreed = true
	told, err := s.t.Cleanup(s.ctx, req)
	s.noError(err)
	return told
}

// TestCleanup takes what has ended and is old enough, and nothing that goes with
// anything else.
func TestCleanup(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	living := s.running("living", "")
	belowLiving := s.ended("work", living)
	top := s.running("work", "")
	child := s.running("work", top)
	s.end(child, thread.Error, 3)
	s.end(top, thread.Completed, 4)
	failed := s.running("work", "")
	s.end(failed, thread.Error, 1)
	first := s.ended("work", "")
	parentOfYoung := s.running("work", "")
	youngChild := s.running("work", parentOfYoung)
	s.end(parentOfYoung, thread.Completed, 1)
	other := s.ended("other", "")
	s.now = s.now.Add(10 * 24 * time.Hour)
	second := s.begin(store.NewThread{Directive: "work", ContinuationOf: first})
	s.end(second, thread.Completed, 1)
	s.end(youngChild, thread.Completed, 1)
	young := s.ended("work", "")

	if told := s.clean(tidy.CleanupRequest{OlderThan: "11d"}); told.Threads != 0 || told.Kept != 0 || told.Left != 0 {
		t.Errorf("older than all: %+v", told)
	}
	told := s.clean(tidy.CleanupRequest{OlderThan: "1w", Status: []thread.State{"Error"}, Directive: "work"})
	// The child that failed goes from below its parent, which stays.
	if told.Threads != 2 || !same(told.ThreadIDs, []thread.ID{child, failed}) || told.Spend != 4 || told.Bytes < 1000 {
		t.Errorf("failed ones: %+v", told)
	}
	s.wantGone(child, failed)
	s.wantWhole(top, first, other)
	told = s.clean(tidy.CleanupRequest{OlderThan: "240h"})
	if !same(told.ThreadIDs, []thread.ID{top, other}) || told.Kept != 3 { // below the living one, the chain that was used since, and what is above one that was
		t.Errorf("all of ten days: %+v", told)
	}
	s.wantGone(top, other)
	s.wantWhole(belowLiving, first, second, young)
	s.wantSpent(living, 7, 7+3+4+1+7+1+1+7+1+7)
	told = s.clean(tidy.CleanupRequest{OlderThan: "0s"})
	if told.Kept != 1 || told.Left != 0 {
		t.Errorf("everything: %+v", told)
	}
	s.wantGone(first, second, young, parentOfYoung, youngChild)
	s.wantWhole(belowLiving)
}

// TestCleanupConfirm: a confirm holds for the time that was shown; a thread that
// ends or is used later stays.
func TestCleanupConfirm(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.ended("one", "")
	ask := func(req tidy.CleanupRequest) tidy.Cleaned {
		t.Helper()
		req.OlderThan, req.By = "0s", "a"
		told, err := s.t.Cleanup(s.ctx, req)
		s.noError(err)
		return told
	}
	if told := ask(tidy.CleanupRequest{Confirm: true}); !told.DryRun || !strings.Contains(told.Next, "nothing was deleted") || told.Threads != 1 {
		t.Errorf("never shown: %+v", told)
	}
	s.now = s.now.Add(time.Minute)
	late := s.ended("late", "")
	if told := ask(tidy.CleanupRequest{Confirm: true}); told.DryRun || told.Threads != 1 {
		t.Errorf("confirmed: %+v", told)
	}
	s.wantGone(id)
	s.wantWhole(late)
	if told := ask(tidy.CleanupRequest{DryRun: true}); told.Threads != 1 || !strings.Contains(told.Next, "confirm: true") {
		t.Errorf("shown: %+v", told)
	}
	for _, bad := range []tidy.CleanupRequest{
		{OlderThan: ""}, {OlderThan: "30"}, {OlderThan: "-1d"}, {OlderThan: "9999999d"}, {OlderThan: "1d", Status: []thread.State{"running"}},
		{OlderThan: "1d", Status: []thread.State{"dead"}},
	} {
		if told, err := s.t.Cleanup(s.ctx, bad); codeOf(err) != tool.CodeBadArguments {
			t.Errorf("%+v: %+v, %v", bad, told, err)
		}
	}
}

// TestAttackCleanupOthers: a model has its thread clean up everything. Only what it has
// started itself goes.
func TestAttackCleanupOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.running("root", "")
	me := s.running("me", root)
	sibling, mine, stranger := s.ended("sibling", root), s.ended("mine", me), s.ended("stranger", "")
	for range 2 {
		_, err := s.t.Cleanup(s.ctx, tidy.CleanupRequest{OlderThan: "0s", From: me, Confirm: true})
		s.noError(err)
	}
	s.wantGone(mine)
	s.wantWhole(sibling, stranger)
}

// TestCleanupIsBounded deletes a thousand threads at a time, and says how many are left.
func TestCleanupIsBounded(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	rows := make([]store.Restored, 2100)
	for i := range rows {
		rows[i].Record = thread.Record{
			ThreadID: thread.NewID("d", testTime, i+1), Kind: thread.KindDirective, Directive: "d", Status: thread.Completed, CreatedAt: testTime,
			UpdatedAt: testTime, CompletedAt: testTime, LastUsed: testTime, Outcome: &thread.Outcome{State: thread.Completed},
		}
	}
	_, err := s.store.Restore(s.ctx, rows)
	s.noError(err)
	var got []int
	for range 4 {
		told := s.clean(tidy.CleanupRequest{OlderThan: "0s"})
		got = append(got, told.Threads, told.Left)
	}
	if got[0] != 1000 || got[1] != 1100 || got[2] != 1000 || got[3] != 100 || got[4] != 100 || got[5] != 0 || got[6] != 0 {
		t.Errorf("deleted, and left, at a time: %v", got)
	}
	if open, err := s.store.Deletions(s.ctx, store.DeletionFilter{Open: true}); err != nil || len(open) > 0 {
		t.Errorf("%d deletions are open, %v", len(open), err)
	}
}

func TestParseAge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "12h": 12 * time.Hour, "0s": 0, "1d12h": 36 * time.Hour, "2W": 336 * time.Hour, "90m": 90 * time.Minute,
	} {
		if got, err := tidy.ParseAge(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "30", "1.5d", "-1d", "1d-2h", "1y", "30 d", "９d", "99999999999999999999d", "40000d", "1d\x00"} {
		if got, err := tidy.ParseAge(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// FuzzParseAge: an age is never negative, never longer than a hundred years.
func FuzzParseAge(f *testing.F) {
	for _, text := range []string{"30d", "1d12h", "0s", "9999999999w", "ſ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if age, err := tidy.ParseAge(text); err == nil && (age < 0 || age > 101*366*24*time.Hour || age > math.MaxInt64/2) {
			t.Errorf("%q is %v", text, age)
		}
	})
}

// notes are something of which each thread has three.
func (s *scene) notes(broken error) tidy.Belonging {
	return tidy.Belonging{
		Name: "its notes", Apart: true,
		Remove: func(ctx, thread.Record) error { return broken },
		Count:  func(_ ctx, ids []thread.ID) (int, error) { return 3 * len(ids), broken },
		Tell:   func(n int) string { return fmt.Sprintf("%d notes", n) },
	}
}

// TestCleanupTellsOfBelongings: a dry run says what else goes, as that of a deletion does,
// and the steps of a cleanup add up.
func TestCleanupTellsOfBelongings(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.t.Belongings = append(s.t.Belongings, s.notes(nil))
	s.ended("one", "")
	shown, err := s.t.Cleanup(s.ctx, tidy.CleanupRequest{OlderThan: "0s", DryRun: true})
	s.noError(err)
	if !slices.Equal(shown.With, []string{"3 notes"}) {
		t.Errorf("shown: %+v", shown)
	}
	gone := s.clean(tidy.CleanupRequest{OlderThan: "0s"})
	if sum := gone.And(shown); gone.Threads != 1 || !slices.Equal(sum.With, []string{"6 notes"}) || sum.Threads != 2 || len(sum.ThreadIDs) != 2 {
		t.Errorf("%+v and %+v are %+v", gone, shown, sum)
	}
	if none := s.clean(tidy.CleanupRequest{OlderThan: "0s"}); none.With != nil {
		t.Errorf("none: %+v", none)
	}
}

// meanwhile is a store in which something happens just before the first deletion.
type meanwhile struct {
	store.Store
	happens func()
}

func (m *meanwhile) Delete(c ctx, sets [][]thread.ID, now time.Time) ([]error, error) {
	if happens := m.happens; happens != nil {
		m.happens = nil
		happens()
	}
	return m.Store.Delete(c, sets, now)
}

// TestCleanupRefusedMeanwhile: a thread that somebody goes on with while a cleanup looks stays,
// and no number of the answer counts it as gone.
func TestCleanupRefusedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		goes        int
		with, twice []string
	}{
		"two go":    {2, []string{"6 notes"}, []string{"12 notes"}},
		"none goes": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.t.Belongings = append(s.t.Belongings, s.notes(nil))
			var goes []thread.ID
			var bytes int64
			for range c.goes {
				id := s.ended("goes", "")
				size, err := s.t.Threads.Records.Of(id).Whole().Size()
				s.noError(err)
				goes, bytes = append(goes, id), bytes+size
			}
			stays := s.running("stays", "")
			below := s.ended("below", stays)
			s.end(stays, thread.Completed, 100)
			s.goesOnMeanwhile(stays)
			told := s.clean(tidy.CleanupRequest{OlderThan: "0s"})
			if told.Threads != c.goes || told.Kept != 2 || told.Spend != thread.Micros(7*c.goes) || told.Bytes != bytes ||
				!same(told.ThreadIDs, goes) || !slices.Equal(told.With, c.with) {
				t.Errorf("%+v, want %d threads of %d bytes and %q", told, c.goes, bytes, c.with)
			}
			if sum := told.And(told); !slices.Equal(sum.With, c.twice) {
				t.Errorf("twice: %q", sum.With)
			}
			s.wantGone(goes...)
			s.wantWhole(stays, below)
		})
	}
}

// goesOnMeanwhile has somebody resume a thread just before anything is deleted.
func (s *scene) goesOnMeanwhile(id thread.ID) {
	directive := string(id[:strings.LastIndex(string(id), "-")])
	s.t.Threads.Store = &meanwhile{s.t.Threads.Store, func() { s.begin(store.NewThread{Directive: directive, ContinuationOf: id}) }}
}

// TestBelongingApart: a belonging that cannot be looked at or removed keeps neither the deletion nor the
// files of the thread. It is told, and taken away by the next sweep.
func TestBelongingApart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.ended("one", "")
	s.t.Belongings = append(s.t.Belongings, s.notes(errors.New("its settings are broken")))
	told, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true})
	s.noError(err)
	if told.Left != 1 || !strings.Contains(strings.Join(told.Kept, ""), "settings are broken") || !strings.Contains(strings.Join(told.With, ""), "its notes, which could not be looked at") {
		t.Errorf("%+v", told)
	}
	if _, err := os.Lstat(s.folder(id)); !os.IsNotExist(err) {
		t.Errorf("its files stay: %v", err)
	}
	s.t.Belongings[len(s.t.Belongings)-1] = s.notes(nil)
	s.sweep()
	s.wantGone(id)
}
