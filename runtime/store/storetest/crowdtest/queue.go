package crowdtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ShareTheQueue has several servers admit from one queue, each of
// which ends what it admitted. Some are killed meanwhile.
func (e Engine) ShareTheQueue(t *testing.T) {
	for _, kills := range []int{0, 2} {
		t.Run(fmt.Sprintf("%d killed", kills), func(t *testing.T) {
			t.Parallel()
			e.shareQueue(t, 5, kills)
		})
	}
}

func (e Engine) shareQueue(t *testing.T, processes, kills int) {
	const threads = 30
	place, dir := e.Make(t), t.TempDir() // for locks, and the claims in their order
	s := e.open(t, place)
	var queue []string
	for range threads {
		id, err := register(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Enqueue(t.Context(), id, 0, testTime); err != nil {
			t.Fatal(err)
		}
		queue = append(queue, string(id))
	}
	players := make([]*Player, processes)
	for i := range players {
		players[i] = e.Start(t, "admit", place, dir)
	}
	for i, p := range players[:kills] {
		for range 2 + i {
			if p.Line() == allEnded {
				break
			}
		}
	}
	for i, p := range players {
		if i < kills {
			p.Kill(t)
		} else {
			p.GoAhead(t)
		}
	}
	// A look at threads ends those whose process is gone.
	for ended := 0; ended < threads; {
		var err error
		if ended, err = e.endDead(t.Context(), s, dir); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range players {
		for line := p.Line(); line != ""; line = p.Line() {
			if strings.HasPrefix(line, "wrong") {
				t.Error(line)
			}
		}
		p.AwaitEnd(t, i < kills)
	}
	claimed, err := os.ReadFile(filepath.Join(dir, "claims"))
	if err != nil {
		t.Fatal(err)
	}
	if order := distinct(strings.Fields(string(claimed))); kills == 0 && !slices.Equal(order, queue) {
		t.Errorf("admitted %v\nwant %v", order, queue)
	}
	if load, err := s.QueueLoad(t.Context()); err != nil || load != (store.QueueLoad{}) {
		t.Errorf("in the end %+v, %v", load, err)
	}
}

// distinct leaves out what came before: a claim whose thread was admitted by another
// meanwhile is made in vain.
func distinct(all []string) (first []string) {
	for _, one := range all {
		if !slices.Contains(first, one) {
			first = append(first, one)
		}
	}
	return first
}

// errBusy says that somebody else is about to admit a thread.
var errBusy = errors.New("busy")

// lockThread takes the lock of a thread's life, or reports that it is taken.
func (e Engine) lockThread(dir string, id thread.ID) (release func() error, err error) {
	return e.Lock(filepath.Join(dir, string(id)+".life"))
}

// endDead ends every admitted thread whose lock is free, and counts all that
// have ended.
func (e Engine) endDead(ctx context.Context, s store.Store, dir string) (ended int, err error) {
	rows, _, err := s.List(ctx, store.Filter{Limit: store.MaxPage})
	if err != nil {
		return 0, err
	}
	for _, rec := range rows {
		if rec.Status.Terminal() {
			ended++
			continue
		}
		if rec.AdmittedAt.IsZero() {
			continue
		}
		release, err := e.lockThread(dir, rec.ThreadID)
		if errors.Is(err, store.ErrTaken) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := errors.Join(endThread(ctx, s, rec.ThreadID), release()); err != nil {
			return 0, err
		}
	}
	return ended, nil
}

// allEnded is what a player says last, before it waits until its input ends.
const allEnded = "all have ended"

// admit admits and ends threads until all have ended. Its argument is the folder of locks.
func (p playing) admit(ctx context.Context, in io.Reader, out io.Writer) error {
	const slots = 3
	dir := p.args[0]
	claims, err := os.OpenFile(filepath.Join(dir, "claims"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	wake := p.store.Changes(ctx)
	for {
		rec, release, err := p.admitOne(ctx, slots, dir, claims)
		if errors.Is(err, errBusy) {
			continue
		}
		if err != nil {
			return err
		}
		load, err := p.store.QueueLoad(ctx)
		if err != nil {
			return err
		}
		said := "admitted " + string(rec.ThreadID)
		if load.Occupied > slots {
			said = fmt.Sprintf("wrong: %d threads in %d slots", load.Occupied, slots)
		}
		switch {
		case release != nil:
			if _, err := fmt.Fprintln(out, said); err != nil {
				return err
			}
			if err := errors.Join(p.endHeld(ctx, rec.ThreadID, dir, out), release()); err != nil {
				return err
			}
		case load == store.QueueLoad{}:
			if _, err := fmt.Fprintln(out, allEnded); err != nil {
				return err
			}
			_, err := io.Copy(io.Discard, in)
			return errors.Join(err, claims.Close())
		default:
			<-wake
		}
	}
}

// endHeld ends a thread whose lock is held, which nobody else may have ended: a look at
// threads, which is made meanwhile, spares it for its lock alone.
func (p playing) endHeld(ctx context.Context, id thread.ID, dir string, out io.Writer) error {
	if _, err := p.engine.endDead(ctx, p.store, dir); err != nil {
		return err
	}
	rec, err := p.store.Get(ctx, id)
	if err == nil && rec.Status.Terminal() {
		_, err = fmt.Fprintf(out, "wrong: %s was ended by somebody else, while its lock was held\n", id)
	}
	return errors.Join(err, endThread(ctx, p.store, id))
}

// admitOne admits the next thread, whose lock is then held; release is nil where none is
// admitted.
func (p playing) admitOne(ctx context.Context, slots int, dir string, claims io.Writer) (rec thread.Record, release func() error, err error) {
	rec, admitted, err := storetest.As(p.store).Admit(ctx, slots, testTime, func(rec thread.Record) (err error) {
		if release != nil {
			err = release()
			release = nil
		}
		if err == nil {
			release, err = p.engine.lockThread(dir, rec.ThreadID)
		}
		if errors.Is(err, store.ErrTaken) {
			return errBusy // to pass it over would be unfair
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(claims, rec.ThreadID)
		return err
	})
	if release != nil && !admitted {
		err = errors.Join(err, release())
		release = nil
	}
	return rec, release, err
}
