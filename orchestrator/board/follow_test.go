package board_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// follow shows a board in the background. Each one told comes through the channel, and no
// more before it was received.
func (s *scene) follow(ctx context.Context, k *board.Keeper, version string) (told chan board.Board, ended chan error) {
	told, ended = make(chan board.Board), make(chan error, 1)
	go func() {
		ended <- k.Follow(ctx, version, board.Options{}, func(b board.Board) error {
			select {
			case told <- b:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	return told, ended
}

func (s *scene) next(told chan board.Board) board.Board {
	s.Helper()
	select {
	case b := <-told:
		return b
	case <-s.ctx.Done():
		s.Fatal("nothing is told")
		return board.Board{}
	}
}

// TestFollow: two who follow are told at once, one of them is slow and misses nothing, one
// leaves, and both show the board.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	k := s.keeper()
	id := s.start("work", "")
	fast, slow := s.face(k), s.face(k)
	ctx, leave := context.WithCancel(s.ctx)
	toFast, fastEnded := s.follow(ctx, k, "")
	toSlow, slowEnded := s.follow(s.ctx, k, "")
	for _, f := range []struct {
		*shown
		told chan board.Board
	}{{fast, toFast}, {slow, toSlow}} {
		if f.take(s.next(f.told)); !f.last.Whole || len(f.rows) != 1 {
			t.Fatalf("told at first: %+v", f.last)
		}
	}
	for turn := 1; fast.rows[id].Turns < 5; turn++ {
		s.spend(id, turn)
		for fast.rows[id].Turns < turn {
			if fast.take(s.next(toFast)); fast.last.Whole {
				t.Fatal("what changes is told as a whole")
			}
		}
	}
	leave()
	if err := <-fastEnded; !errors.Is(err, context.Canceled) {
		t.Errorf("left with %v", err)
	}
	for told := 0; slow.rows[id].Turns < 5; told++ {
		slow.take(s.next(toSlow))
		if told > 2 {
			t.Error("who is slow is told everything")
		}
	}
	slow.wantWhole()
	s.feed.Close()
	if err := <-slowEnded; !errors.Is(err, board.ErrOver) {
		t.Errorf("the project is closed: %v", err)
	}
	k.Close()
	if _, ended := s.follow(s.ctx, k, ""); (<-ended) == nil {
		t.Error("a board of a project that was closed is followed")
	}
}

// TestFollowersOfClosed: followers are told when the project is closed, in the order in which
// its controller closes it.
func TestFollowersOfClosed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	k := s.keeper()
	told, ended := s.follow(s.ctx, k, "")
	s.next(told)
	k.Close()
	select {
	case err := <-ended:
		if !errors.Is(err, board.ErrOver) {
			t.Errorf("the project is closed: %v", err)
		}
	case <-s.ctx.Done():
		t.Fatal("who follows is told nothing")
	}
	if _, late := s.follow(s.ctx, k, ""); !errors.Is(<-late, board.ErrOver) {
		t.Error("a board that was closed is followed")
	}
	s.feed.Close()
}

// TestNobodyFollows: while nobody follows nothing listens to what changes, and who comes
// later is told what has changed meanwhile.
func TestNobodyFollows(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	k := s.keeper()
	f := s.face(k)
	id := s.start("work", "")
	for round := 1; round < 3; round++ {
		ctx, leave := context.WithCancel(s.ctx)
		told, ended := s.follow(ctx, k, f.version)
		f.take(s.next(told))
		if f.last.Whole != (round == 1) {
			t.Errorf("round %d: told %+v", round, f.last)
		}
		if f.rows[id].Turns != round-1 {
			t.Errorf("round %d: %s", round, text(f.rows[id]))
		}
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("left with %v", err)
		}
		s.spend(id, round)
	}
	f.look()
	f.wantWhole()
}

// TestFollowEndsWithItsReader: an error of who is told ends following, and is returned.
func TestFollowEndsWithItsReader(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	gone := errors.New("the reader is gone")
	if err := s.keeper().Follow(s.ctx, "nonsense.7.x", board.Options{}, func(board.Board) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("ended with %v", err)
	}
}

// TestVersions: text that is no version of this keeper, and of this part of the board,
// gets the whole one.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	k := s.keeper()
	root := s.start("work", "")
	s.start("part", root)
	other := s.start("other", "")
	b, err := k.Since(s.ctx, "", board.Options{})
	s.noError(err)
	part, err := k.Since(s.ctx, b.Version, board.Options{Top: root})
	s.noError(err)
	if !part.Whole || len(part.Rows) != 2 || part.Totals.Working != 2 {
		t.Errorf("of a part: %+v", part)
	}
	for _, version := range []string{"", "x", b.Version + "0", b.Version + "." + string(root), part.Version, "-1", ".", "..", b.Version[:11] + "99.", b.Version[:11] + "-1.", string(make([]byte, 1<<16))} {
		got, err := k.Since(s.ctx, version, board.Options{})
		if err != nil || !got.Whole || len(got.Rows) != 3 {
			t.Errorf("version %.40q: whole %v, %d rows, %v", version, got.Whole, len(got.Rows), err)
		}
	}
	s.spend(other, 1)
	if got, err := k.Since(s.ctx, part.Version, board.Options{Top: root}); err != nil || got.Whole || len(got.Rows) != 0 {
		t.Errorf("another tree has changed: %+v, %v", got, err)
	}
	if got, err := k.Since(s.ctx, b.Version, board.Options{}); err != nil || got.Whole || len(got.Rows) != 1 {
		t.Errorf("a thread has worked: %+v, %v", got, err)
	}
	if _, err := k.Since(s.ctx, "", board.Options{Top: "no/such-1"}); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("of no thread: %v", err)
	}
}

// TestVerified: a thread that has ended is verified while somebody follows, again when its files
// have changed, and no transcript is read twice for nothing.
func TestVerified(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	good, bad, big := s.start("good", ""), s.start("bad", ""), s.start("big", "")
	for _, id := range []thread.ID{good, bad, big} {
		if id == big {
			for range 9 {
				s.said(big, strings.Repeat("x", 1<<20))
			}
		}
		s.end(id, thread.Outcome{State: thread.Completed})
	}
	works := s.start("works", "")
	asked := make(chan thread.ID, 100)
	k := board.New(board.Deps{Threads: s.all, Feed: s.feed, CheckEvery: time.Millisecond, Verify: func(_ context.Context, id thread.ID) (bool, error) {
		asked <- id
		return id == good, nil
	}})
	defer k.Close()
	f := s.face(k)
	ctx, leave := context.WithCancel(s.ctx)
	told, ended := s.follow(ctx, k, "")
	until := func(verified map[thread.ID]board.Verified) {
		t.Helper()
		for {
			met := true
			for id, want := range verified {
				met = met && f.rows[id] != nil && f.rows[id].Verified == want
			}
			if met {
				return
			}
			f.take(s.next(told))
		}
	}
	until(map[thread.ID]board.Verified{good: board.Yes, bad: board.No, big: board.Unknown, works: board.Unknown})
	times := map[thread.ID]int{}
	for times[good]+times[bad] < 2 {
		times[<-asked]++
	}
	s.said(good, "and one more thing")
	select {
	case id := <-asked:
		times[id]++
	case b := <-told: // that it is not known
		f.take(b)
		times[<-asked]++
	case <-s.ctx.Done():
		t.Fatal("it is not verified again")
	}
	until(map[thread.ID]board.Verified{good: board.Yes})
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("left with %v", err)
	}
	k.Close()
	close(asked)
	for id := range asked {
		times[id]++
	}
	if times[good] != 2 || times[bad] != 1 || times[big] != 0 || times[works] != 0 {
		t.Errorf("verified %v", times)
	}
}

// TestDeadAreSettled: a thread whose process is gone is shown at once, and settled while
// somebody follows.
func TestDeadAreSettled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	dead := s.register(store.NewThread{Directive: "dead"}).ThreadID
	k := s.keeper()
	defer k.Close()
	f := s.face(k)
	ctx, leave := context.WithCancel(s.ctx)
	defer leave()
	told, _ := s.follow(ctx, k, "")
	for f.rows[dead] == nil || f.rows[dead].Status != thread.Error {
		f.take(s.next(told))
	}
}
