package board

import (
	"context"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Bounds of verification while somebody follows. It reads all that a thread has left: some
// milliseconds for each megabyte.
const (
	checkMost = 4       // threads at a time
	lookAgain = 20      // of those that were verified: whether their files have changed
	tooLong   = 8 << 20 // bytes of a transcript; a longer one is verified when somebody asks
)

// verdicts are what verifications of threads have found, for as long as their files have
// the same sizes and times.
type verdicts struct {
	mu    sync.Mutex
	known map[thread.ID]verdict
}

// verdict is what a verification has found.
type verdict struct {
	found   Verified
	stamps  [2]records.Stamp // of thread.json and transcript
	updated time.Time        // of the row
}

// of is what is known of a thread.
func (v *verdicts) of(rec thread.Record) Verified { return v.at(rec.ThreadID, rec.UpdatedAt) }

func (v *verdicts) at(id thread.ID, updated time.Time) Verified {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.known[id]; ok && known.updated.Equal(updated) && known.found != tooLongToCheck {
		return known.found
	}
	return Unknown
}

// tooLongToCheck stands for a thread that is not verified on its own.
const tooLongToCheck Verified = ""

func (v *verdicts) get(id thread.ID) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.known[id]
	return known, ok
}

// put keeps a verdict, and reports whether it is another than before. With found empty and
// no stamps there is none.
func (v *verdicts) put(id thread.ID, now verdict) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) > 4*MostEnded {
		v.known = map[thread.ID]verdict{}
	}
	was := v.known[id].found
	v.known[id] = now
	return was != now.found
}

func (v *verdicts) forget(id thread.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, id)
}

// verify verifies what has ended, a few threads at a time, until ctx ends.
func (k *Keeper) verify(ctx context.Context) {
	if k.Verify == nil {
		return
	}
	rest := time.NewTimer(k.CheckEvery)
	defer rest.Stop()
	for again := 0; ; {
		select {
		case <-rest.C:
		case <-ctx.Done():
			return
		}
		var changed bool
		if changed, again = k.check(ctx, again); (changed || k.someApplied()) && ctx.Err() == nil {
			k.changed(false)
		}
		rest.Reset(k.CheckEvery)
	}
}

// someApplied reports whether the changes of a row have come to be applied, which no commit tells.
func (k *Keeper) someApplied() bool {
	k.looking.Lock()
	defer k.looking.Unlock()
	for _, e := range k.rows.rows {
		if k.wasApplied(e) {
			return true
		}
	}
	return false
}

// check verifies the first threads that are not, and looks at the files of some that were,
// from the one at again on. It returns where to go on.
func (k *Keeper) check(ctx context.Context, again int) (changed bool, _ int) {
	ended := k.ended()
	checked := 0
	for _, e := range ended {
		known, ok := k.verdicts.get(e.id)
		if ok && known.updated.Equal(e.updated) {
			continue
		}
		if checked++; checked > checkMost || ctx.Err() != nil {
			return changed, again
		}
		changed = k.checkOne(ctx, e) || changed
	}
	for range min(lookAgain, len(ended)) {
		e := ended[again%len(ended)]
		again++
		known, ok := k.verdicts.get(e.id)
		if stamps, err := k.stamps(e.id); ok && (err != nil || !stamps[0].Same(known.stamps[0]) || !stamps[1].Same(known.stamps[1])) && known.found != No {
			k.verdicts.forget(e.id) // the next check verifies it
			changed = true
		}
	}
	return changed, again
}

// endedThread is a thread that has ended, as its row was.
type endedThread struct {
	id      thread.ID
	updated time.Time
}

// ended are the threads that are shown and have ended.
func (k *Keeper) ended() (list []endedThread) {
	k.looking.Lock()
	defer k.looking.Unlock()
	for _, key := range k.rows.order {
		if s := k.rows.rows[key].stand; s.newest.status.Terminal() && s.newest.kind != thread.KindSet {
			list = append(list, endedThread{s.newest.id, s.newest.updated})
		}
	}
	return list
}

func (k *Keeper) checkOne(ctx context.Context, e endedThread) (changed bool) {
	now := verdict{found: No, updated: e.updated}
	var err error
	if now.stamps, err = k.stamps(e.id); err == nil && now.stamps[1].Size > tooLong {
		now.found = tooLongToCheck
		return k.verdicts.put(e.id, now)
	}
	good, err := k.Verify(ctx, e.id)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		now.found = tooLongToCheck // it cannot be verified now
	case good:
		now.found = Yes
	}
	return k.verdicts.put(e.id, now)
}

// stamps are those of the files that a verdict is about.
func (k *Keeper) stamps(id thread.ID) (stamps [2]records.Stamp, err error) {
	of := k.Threads.Records.Of(id)
	if stamps[0], err = of.Meta().Stamp(); err != nil {
		return stamps, err
	}
	stamps[1], err = of.Transcript().Stamp()
	return stamps, err
}
