package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var costTests = []test{
	{"costs are summed up by what they are of, and by time", costing(costsSummed)},
	{"what the deleted have used stays", costing(costsOfDeleted)},
	{"what a lost database knew of the deleted counts without their names", costing(costsOfLost)},
	{"a set costs nothing itself", costing(costsOfSets)},
	{"what was imported costs nothing here", costing(costsOfImported)},
}

// coster is a harness of threads that have used something.
type coster struct{ *harness }

func costing(test func(coster)) func(*harness) {
	return func(h *harness) { test(coster{h}) }
}

// used registers a thread that has used something, and ends it.
func (h coster) used(directive, model string, after time.Duration, as thread.State, spend thread.Micros) thread.ID {
	h.Helper()
	n := h.newThread(directive, "")
	n.Model, n.Now = model, h.now.Add(after)
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	h.apply(store.Claimed(rec.ThreadID, thread.Process{PID: 4711, Host: "host"}, n.Now))
	h.noError(h.RecordCost(h.ctx, rec.ThreadID, thread.Cost{Turns: 2, InputTokens: 10, OutputTokens: 1, CacheReadTokens: 3, CacheWriteTokens: 4, Spend: spend}, 5))
	if as.Terminal() {
		h.end(rec.ThreadID, as)
	}
	return rec.ThreadID
}

// wantCosts compares sums, each written as "key slot-in-hours threads/errors/cancelled spend".
func (h coster) wantCosts(q store.CostQuery, want ...string) {
	h.Helper()
	sums, err := h.Costs(h.ctx, q)
	h.noError(err)
	var got []string
	for _, s := range sums {
		text := s.Key
		if !s.Slot.IsZero() {
			text += fmt.Sprintf(" %+g", s.Slot.Sub(h.now).Hours())
		}
		text += fmt.Sprintf(" %d/%d/%d %d", s.Threads, s.Errors, s.Cancelled, s.Cost.Spend)
		if s.Gone {
			text += " gone"
		}
		if s.Unknown {
			text += " unknown"
		} else if c := s.Cost; c.Turns != 2*s.Threads || c.InputTokens != 10*int64(s.Threads) || c.Tokens() != 18*int64(s.Threads) {
			h.Errorf("%s has used %+v", text, c)
		}
		got = append(got, text)
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		h.Errorf("costs %+v\n%s, want\n%s", q, strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

func costsSummed(h coster) {
	h.now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	h.wantCosts(store.CostQuery{})
	h.used("b", "p/m", 0, thread.Completed, 5)
	h.used("a", "p/m", time.Hour, thread.Error, 7)
	h.used("a", "p/n", 2*time.Hour, thread.Cancelled, 11)
	h.used("a", "p/n", 2*time.Hour+time.Second, thread.Running, 13)
	h.used("a", "p/n", 50*time.Hour, thread.Completed, 17)
	h.wantCosts(store.CostQuery{}, " 5/1/1 53")
	h.wantCosts(store.CostQuery{By: store.CostByDirective}, "a 4/1/1 48", "b 1/0/0 5")
	h.wantCosts(store.CostQuery{By: store.CostByModel}, "p/m 2/1/0 12", "p/n 3/0/1 41")
	h.wantCosts(store.CostQuery{By: store.CostByDirective, Slot: 2 * time.Hour}, "a +0 1/1/0 7", "b +0 1/0/0 5", "a +2 2/0/1 24", "a +50 1/0/0 17")
	h.wantCosts(store.CostQuery{Since: h.now.Add(time.Hour), Until: h.now.Add(50 * time.Hour)}, " 3/1/1 31")
	h.wantCosts(store.CostQuery{Until: h.now})
	if _, err := h.Costs(h.ctx, store.CostQuery{By: "name; DROP TABLE threads"}); err == nil {
		h.Error("costs by something that threads do not have")
	}
}

func costsOfDeleted(h coster) {
	h.now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	d := deleter(h)
	d.delete(h.used("a", "p/m", time.Hour, thread.Error, 5))
	d.delete(h.used("a", "p/m", 2*time.Hour, thread.Completed, 6))
	h.used("a", "p/m", time.Hour, thread.Completed, 7)
	h.wantCosts(store.CostQuery{By: store.CostByDirective}, "a 1/0/0 7", "a 2/1/0 11 gone")
	h.wantCosts(store.CostQuery{By: store.CostByModel, Slot: time.Hour}, "p/m +1 1/0/0 7", "p/m +12 2/1/0 11 gone")
	h.wantCosts(store.CostQuery{Since: h.now.Add(13 * time.Hour)})
}

func costsOfLost(h coster) {
	h.now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	deleter(h).delete(h.used("a", "p/m", time.Hour, thread.Completed, 5))
	day := h.now.Unix() / 86400
	h.noError(h.RestoreGone(h.ctx, store.Gone{Days: map[int64]thread.Micros{day: 45, day + 1: 3}}))
	h.wantCosts(store.CostQuery{By: store.CostByDirective, Slot: 24 * time.Hour}, " +0 0/0/0 40 gone unknown", "a +0 1/0/0 5 gone", " +24 0/0/0 3 gone unknown")
}

func costsOfSets(h coster) {
	h.registeredSet("")
	h.wantCosts(store.CostQuery{})
}

// costsOfImported: what was paid for elsewhere counts neither while it is there nor when it
// was deleted, whatever else the metadata say.
func costsOfImported(h coster) {
	h.now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	h.used("a", "p/m", 0, thread.Completed, 5)
	taken := h.record("b-1772323200", thread.Completed)
	taken.Model, taken.TokenCount = "p/m", 5
	taken.Cost = thread.Cost{Turns: 2, InputTokens: 10, OutputTokens: 1, CacheReadTokens: 3, CacheWriteTokens: 4, Spend: 40}
	taken.Metadata = thread.Imported{Signer: "f", Recording: "r", At: h.now}.Metadata()
	h.restore(store.Restored{Record: taken})
	h.label(taken.ThreadID, store.LabelChange{Metadata: []byte(`{"note":"\u0000 imported"}`)})

	wanted := func(when string) {
		h.wantCosts(store.CostQuery{By: store.CostByDirective}, "a 1/0/0 5")
		stats, err := h.Stats(h.ctx, store.StatsSince{Used: h.now, Created: h.now})
		h.noError(err)
		if stats.Spend != 5 {
			h.Errorf("%s: spend since %s is %d, want 5", when, h.now, stats.Spend)
		}
		gone, err := h.Gone(h.ctx)
		h.noError(err)
		if len(gone.Days) != 0 {
			h.Errorf("%s: spend of the deleted is %v, want none", when, gone.Days)
		}
	}
	wanted("imported")
	deleter(h).delete(taken.ThreadID)
	wanted("deleted")
}
