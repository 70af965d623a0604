package storetest

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var deletionTests = []test{
	{"a whole tree goes, and is remembered", deleting(deleteTree)},
	{"what has not ended stays, and so does all it is with", deleting(deleteLiving)},
	{"nothing is left without what it is below of", deleting(deleteOutside)},
	{"a chain goes whole", deleting(deleteChain)},
	{"of several at once one deletes", deleting(deleteAtOnce)},
	{"a thread is continued or deleted, and not both", deleting(deleteOrContinue)},
	{"an id is not given out again", deleting(deletedID)},
	{"what was spent stays in every sum", deleting(deletedSpend)},
	{"what a crash has left unsettled is settled", deleting(deletedUnsettled)},
	{"trees of several threads", deleting(treesOfSeveral)},
	{"the expired, in pages", deleting(expiredPages)},
	{"a sweep is due once an interval, and its time goes forward by bounded steps", deleting(sweeps)},
	{"what a dry run has told is remembered for an hour", deleting(shownPlans)},
	{"the deleted can be told and told again", deleting(goneRestored)},
	{"the deleted outlive a lost database", deleting(goneInNewStore)},
}

// deleter is a harness that deletes threads.
type deleter struct{ *harness }

func deleting(test func(deleter)) func(*harness) {
	return func(h *harness) { test(deleter{h}) }
}

// ended registers a thread and ends it.
func (h deleter) ended(directive string, parent thread.ID, as thread.State) thread.ID {
	h.Helper()
	id := h.running(directive, parent)
	h.end(id, as)
	return id
}

// delete deletes one set, which must not be refused.
func (h deleter) delete(set ...thread.ID) {
	h.Helper()
	h.refusal(nil, set...)
}

// refusal deletes one set and compares why it was not.
func (h deleter) refusal(want error, set ...thread.ID) {
	h.Helper()
	refused, err := h.Delete(h.ctx, [][]thread.ID{set}, h.now)
	h.noError(err)
	if got := refused[0]; (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
		h.Errorf("delete %v: %v, want %v", set, got, want)
	}
}

// gone holds that a thread was deleted.
func (h deleter) gone(id thread.ID) {
	h.Helper()
	var deleted *thread.DeletedError
	if rec, err := h.Get(h.ctx, id); !errors.As(err, &deleted) || deleted.ID != id || !deleted.At.Equal(h.now.Truncate(time.Millisecond)) || !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("get of %s: %+v, %v; want that it was deleted", id, rec, err)
	}
}

// deletions are those that have not ended, or all.
func (h deleter) deletions(open bool) (ids []thread.ID) {
	h.Helper()
	list, err := h.Deletions(h.ctx, store.DeletionFilter{Open: open})
	h.noError(err)
	for _, d := range list {
		if open && !d.Open {
			h.Errorf("%+v has ended", d)
		}
		ids = append(ids, d.Record.ThreadID)
	}
	slices.Sort(ids)
	return ids
}

func deleteTree(h deleter) {
	other := h.ended("other", "", thread.Completed)
	top := h.running("top", "")
	child := h.ended("child", top, thread.Error)
	below := h.running("below", "")
	h.ask(h.question("q", below))
	h.end(below, thread.Cancelled)
	h.end(top, thread.Completed)
	h.delete(top, child)
	h.delete(below)
	h.delete() // nothing
	for _, id := range []thread.ID{top, child, below} {
		h.gone(id)
	}
	rows, _, err := h.List(h.ctx, store.Filter{})
	h.noError(err)
	if ids(rows) != ids([]thread.Record{{ThreadID: other}}) {
		h.Errorf("left in the list: %s", ids(rows))
	}
	list, err := h.News(h.ctx, 0, 100)
	h.wantNews("news", list, err, "ended "+string(other))
	if open, err := h.Questions(h.ctx, store.QuestionFilter{}); err != nil || len(open) > 0 {
		h.Errorf("questions %v, %v", open, err)
	}
	if got := h.deletions(true); !slices.Equal(got, sorted(top, child, below)) {
		h.Errorf("to be gone on with: %v", got)
	}
	found, err := h.Deletions(h.ctx, store.DeletionFilter{IDs: []thread.ID{child}})
	h.noError(err)
	if len(found) != 1 || found[0].Record.ParentID != top || found[0].Record.Status != thread.Error || found[0].Record.Directive != "child" {
		h.Errorf("deletion %+v", found)
	}
	known, err := h.Known(h.ctx, []thread.ID{top, other, "never"})
	h.noError(err)
	if !known[top] || !known[other] || known["never"] {
		h.Errorf("while a folder may be left, known are %v", known)
	}
	h.noError(h.EndDeletions(h.ctx, []thread.ID{top, child, "never"}))
	h.noError(h.EndDeletions(h.ctx, []thread.ID{top}))
	if got := h.deletions(true); !slices.Equal(got, []thread.ID{below}) {
		h.Errorf("after the end of two: %v", got)
	}
	if got := h.deletions(false); !slices.Equal(got, sorted(top, child, below)) {
		h.Errorf("remembered: %v", got)
	}
	h.gone(top)
	if known, err = h.Known(h.ctx, []thread.ID{top}); err != nil || known[top] {
		h.Errorf("a folder that comes back later is known: %v, %v", known, err)
	}
	h.delete(top) // again
}

func sorted(list ...thread.ID) []thread.ID { return slices.Sorted(slices.Values(list)) }

func deleteLiving(h deleter) {
	free := h.ended("free", "", thread.Completed)
	top := h.running("top", "")
	child := h.running("child", top)
	h.end(top, thread.Error)
	queued := h.register("queued", "")
	sets := [][]thread.ID{{top, child}, {free}, {queued}}
	refused, err := h.Delete(h.ctx, sets, h.now)
	h.noError(err)
	var living *store.NotEndedError
	if !errors.As(refused[0], &living) || living.Thread != child || living.State != thread.Running {
		h.Errorf("a tree with a running thread: %v", refused[0])
	}
	if refused[1] != nil {
		h.Errorf("one that has ended: %v", refused[1])
	}
	if !errors.As(refused[2], &living) || living.Thread != queued {
		h.Errorf("a queued one: %v", refused[2])
	}
	h.get(top)
	h.get(child)
	h.get(queued)
	h.gone(free)
}

func deleteOutside(h deleter) {
	top := h.running("top", "")
	child := h.ended("child", top, thread.Completed)
	h.end(top, thread.Completed)
	h.refusal(&store.OutsideError{Thread: child, Names: top}, top)
	// A set that is refused keeps those that it is below of.
	late := h.running("late", "")
	under := h.running("under", late)
	h.end(late, thread.Completed)
	refused, err := h.Delete(h.ctx, [][]thread.ID{{late}, {under}, {top, child}}, h.now)
	h.noError(err)
	if refused[0] == nil || refused[1] == nil || refused[2] != nil {
		h.Errorf("refused %v", refused)
	}
	h.get(late)
	h.gone(child)
}

func deleteChain(h deleter) {
	first := h.ended("chain", "", thread.Completed)
	n := h.newThread("chain", "")
	n.ContinuationOf = first
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	second := rec.ThreadID
	h.noError(h.Link(h.ctx, first, second, h.now))
	h.apply(store.Claimed(second, thread.Process{PID: 4711, Host: "host"}, h.now))
	h.end(second, thread.Completed)
	h.refusal(&store.OutsideError{Thread: first, Names: second}, second)
	h.refusal(&store.OutsideError{Thread: second, Names: first}, first)
	h.delete(second, first)
	h.gone(first)
	h.gone(second)
}

func deleteAtOnce(h deleter) {
	id := h.ended("twice", "", thread.Completed)
	for _, err := range atOnce(4, func(int) error {
		refused, err := h.Delete(h.ctx, [][]thread.ID{{id}}, h.now)
		return errors.Join(append(refused, err)...)
	}) {
		h.noError(err)
	}
	h.gone(id)
	if got := h.deletions(false); len(got) != 1 {
		h.Errorf("deleted %v", got)
	}
}

func deleteOrContinue(h deleter) {
	deletions := 0
	for range 20 {
		id := h.ended("raced", "", thread.Completed)
		var next thread.ID
		var refused []error
		errs := atOnce(2, func(i int) (err error) {
			if i == 0 {
				refused, err = h.Delete(h.ctx, [][]thread.ID{{id}}, h.now)
				return err
			}
			n := h.newThread("raced", "")
			n.ContinuationOf = id
			rec, _, err := h.Register(h.ctx, n, claimNothing)
			if err == nil {
				next, err = rec.ThreadID, h.Link(h.ctx, id, rec.ThreadID, h.now)
			}
			return err
		})
		h.noError(errs[0])
		var outside *store.OutsideError
		var gone *thread.DeletedError
		switch {
		case refused[0] == nil && errors.As(errs[1], &gone) && gone.ID == id:
			deletions++
			h.gone(id)
		case errors.As(refused[0], &outside) && outside.Thread == next && errs[1] == nil:
			h.get(id)
		default:
			h.Errorf("deleted: %v, continued: %v", refused[0], errs[1])
		}
	}
	h.Logf("%d of 20 were deleted", deletions)
}

func deletedID(h deleter) {
	first := h.ended("again", "", thread.Completed)
	second := h.ended("again", "", thread.Completed)
	h.delete(second)
	h.noError(h.EndDeletions(h.ctx, []thread.ID{second}))
	if third := h.register("again", ""); third == second || third == first {
		h.Errorf("%s was given out again", third)
	}
	n := h.newThread("again", "")
	n.ID = second
	if _, _, err := h.Store.Register(h.ctx, n); !errors.Is(err, store.ErrTaken) {
		h.Errorf("a given id of a deleted thread: %v", err)
	}
	n = h.newThread("again", "")
	n.ContinuationOf = second
	if _, _, err := h.Register(h.ctx, n, claimNothing); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("continuing a deleted thread: %v", err)
	}
}

func deletedSpend(h deleter) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	root := h.running("r", "")
	h.noError(h.OpenRoot(h.ctx, root, 100, h.now))
	child := h.running("c", root)
	h.reserve(child, root, 50)
	below := h.running("b", child)
	h.reserve(below, child, 20)
	for id, own := range map[thread.ID]thread.Micros{root: 5, child: 7, below: 11} {
		h.report(id, own)
		h.noError(h.RecordCost(h.ctx, id, thread.Cost{Turns: 1, Spend: own}, 10))
	}
	for _, id := range []thread.ID{below, child} {
		h.settle(id)
		h.end(id, thread.Completed)
	}
	since := store.StatsSince{Used: h.now, Created: h.now}
	before, err := h.Stats(h.ctx, since)
	h.noError(err)
	h.want(root, "", 100, 0, 23, 5, true)
	h.delete(below)
	h.noError(h.ForgetBudgets(h.ctx, []thread.ID{below}, h.now))
	h.delete(child)
	for range 2 { // the second changes nothing
		h.noError(h.ForgetBudgets(h.ctx, []thread.ID{child, below}, h.now))
	}
	got, err := h.Budget(h.ctx, root)
	h.noError(err)
	if got.Actual != 23 || got.Own != 5 || got.Gone != 18 || got.Remaining() != 77 {
		h.Errorf("the budget above: %+v", got)
	}
	if _, tree, err := h.Tree(h.ctx, root); err != nil || tree.Actual != 23 || tree.Threads != 1 {
		h.Errorf("the tree above: %+v, %v", tree, err)
	}
	if x, err := h.Exposure(h.ctx, root); err != nil || x.Most != 100 {
		h.Errorf("exposure %+v, %v", x, err)
	}
	after, err := h.Stats(h.ctx, since)
	h.noError(err)
	if after.Spend != before.Spend || after.Spend != 23 || after.Threads != before.Threads-2 {
		h.Errorf("stats %+v, before %+v", after, before)
	}
	h.settle(root)
	if b, err := h.Budget(h.ctx, root); err != nil || b.Actual != 23 {
		h.Errorf("when the root has ended: %+v, %v", b, err)
	}
}

func deletedUnsettled(h deleter) {
	root := h.running("r", "")
	h.noError(h.OpenRoot(h.ctx, root, 100, h.now))
	child := h.running("c", root)
	h.reserve(child, root, 50)
	h.report(child, 7)
	h.end(child, thread.Error)
	h.delete(child)
	h.noError(h.ForgetBudgets(h.ctx, []thread.ID{child}, h.now))
	b, err := h.Budget(h.ctx, root)
	h.noError(err)
	if b.Reserved != 0 || b.Actual != 7 || b.Gone != 7 {
		h.Errorf("the budget above: %+v", b)
	}
}

func treesOfSeveral(h deleter) {
	a := h.running("a", "")
	b := h.running("b", a)
	c := h.ended("c", b, thread.Completed)
	trees, err := h.Trees(h.ctx, []thread.ID{a, b, "never"})
	h.noError(err)
	if len(trees) != 2 || ids(trees[a]) != ids([]thread.Record{{ThreadID: a}, {ThreadID: b}, {ThreadID: c}}) || len(trees[b]) != 2 {
		h.Errorf("trees %v", trees)
	}
	if trees[b][1].Outcome != nil || trees[b][1].Status != thread.Completed {
		h.Errorf("a member: %+v", trees[b][1])
	}
}

func expiredPages(h deleter) {
	var want []thread.ID
	start := h.now
	for i, state := range []thread.State{thread.Completed, thread.Error, thread.Completed, thread.Cancelled, thread.Completed} {
		h.now = start.Add(time.Duration(i) * time.Hour)
		want = append(want, h.ended("d", "", state))
	}
	h.running("d", "")
	page := func(e store.Expiry) (got []thread.ID) {
		rows, err := h.Expired(h.ctx, e)
		h.noError(err)
		for _, rec := range rows {
			got = append(got, rec.ThreadID)
		}
		return got
	}
	until := start.Add(3 * time.Hour)
	if got := page(store.Expiry{UsedUntil: until}); !slices.Equal(got, want[:4]) {
		h.Errorf("until an hour before the last: %v, want %v", got, want[:4])
	}
	if got := page(store.Expiry{UsedUntil: until, States: []thread.State{thread.Completed}}); !slices.Equal(got, []thread.ID{want[0], want[2]}) {
		h.Errorf("completed: %v", got)
	}
	if got := page(store.Expiry{UsedUntil: until, Directive: "e"}); got != nil {
		h.Errorf("of another directive: %v", got)
	}
	last := h.get(want[1])
	if got := page(store.Expiry{UsedUntil: until, After: &last, Limit: 1}); !slices.Equal(got, want[2:3]) {
		h.Errorf("the next page: %v", got)
	}
	if _, err := h.Expired(h.ctx, store.Expiry{UsedUntil: until, States: []thread.State{thread.Running}}); err == nil {
		h.Error("running threads can expire")
	}
}

func sweeps(h deleter) {
	sweep := func(now time.Time, wantDue bool, want time.Time) {
		h.Helper()
		by, due, err := h.BeginSweep(h.ctx, now, time.Hour, 24*time.Hour)
		h.noError(err)
		if due != wantDue || due && !by.Equal(want.Truncate(time.Millisecond)) {
			h.Errorf("at %v: due %t, by %v; want %t, %v", now, due, by, wantDue, want)
		}
	}
	h.ended("d", "", thread.Completed)
	const day = 24 * time.Hour
	endOfDay := h.now.Truncate(day).Add(day)
	later := h.now.AddDate(3, 0, 0) // the clock has jumped, or nothing was done for years
	sweep(later, true, endOfDay)
	sweep(later.Add(59*time.Minute), false, later)
	sweep(later.Add(time.Hour), true, endOfDay.Add(day))
	sweep(h.now, true, h.now) // it was put right
	sweep(h.now.Add(-time.Minute), true, h.now.Add(-time.Minute))
	sweep(h.now.Add(2*time.Hour), true, h.now.Add(2*time.Hour))
	sweep(h.now.Add(100*day), true, h.now.Add(2*time.Hour+day))
}

func shownPlans(h deleter) {
	shown := func(key string, now time.Time) string {
		p, err := h.ShownPlan(h.ctx, key, now)
		h.noError(err)
		if p == nil {
			return ""
		}
		return p.Digest
	}
	h.noError(h.ShowPlan(h.ctx, "k", store.ShownPlan{Digest: "a", At: h.now}))
	h.noError(h.ShowPlan(h.ctx, "k", store.ShownPlan{Digest: "b", At: h.now}))
	if a, b := shown("k", h.now.Add(time.Hour)), shown("l", h.now); a != "b" || b != "" {
		h.Errorf("shown %q, another's %q", a, b)
	}
	if late, early := shown("k", h.now.Add(time.Hour+time.Second)), shown("k", h.now.Add(-2*time.Hour)); late != "" || early != "" {
		h.Errorf("after an hour %q, before %q", late, early)
	}
}

func goneRestored(h deleter) {
	root := h.running("r", "")
	h.noError(h.OpenRoot(h.ctx, root, 100, h.now))
	child := h.running("c", root)
	h.reserve(child, root, 50)
	h.report(child, 7)
	h.noError(h.RecordCost(h.ctx, child, thread.Cost{Turns: 1, Spend: 7}, 10))
	h.settle(child)
	h.end(child, thread.Completed)
	done := h.ended("c", "", thread.Completed)
	h.delete(child)
	h.delete(done)
	h.noError(h.EndDeletions(h.ctx, []thread.ID{done}))
	h.noError(h.ForgetBudgets(h.ctx, []thread.ID{child, done}, h.now))
	gone, err := h.Gone(h.ctx)
	h.noError(err)
	day := h.now.UnixMilli() / (24 * time.Hour).Milliseconds()
	if len(gone.Threads) != 2 || !gone.Threads[0].Open || gone.Threads[1].Open ||
		!maps.Equal(gone.Spent, map[thread.ID]thread.Micros{root: 7}) || !maps.Equal(gone.Days, map[int64]thread.Micros{day: 7}) {
		h.Fatalf("gone %+v", gone)
	}
	h.restoreGone(gone, root, child)
}

// restoreGone restores what was deleted, twice, and then what threads' folders tell, in
// a store that has it all already.
func (h deleter) restoreGone(gone store.Gone, root, child thread.ID) {
	for range 2 {
		h.noError(h.RestoreGone(h.ctx, gone))
	}
	back, err := h.Restore(h.ctx, []store.Restored{{Record: h.record(child, thread.Completed)}})
	h.noError(err)
	if back.Threads != 0 || len(back.Refused) != 1 {
		h.Errorf("a thread that is being deleted came back: %+v", back)
	}
	st, err := h.Stats(h.ctx, store.StatsSince{Used: h.now, Created: h.now})
	h.noError(err)
	if st.Spend != 7 {
		h.Errorf("spent on the day: %d", st.Spend)
	}
	if b, err := h.Budget(h.ctx, root); err != nil || b.Gone != 7 || b.Actual != 7 {
		h.Errorf("budget %+v, %v", b, err)
	}
}

func goneInNewStore(h deleter) {
	gone := store.Gone{
		Threads: []store.GoneThread{
			{ID: "c-1", Kind: thread.KindDirective, Directive: "c", CreatedAt: h.now, DeletedAt: h.now, Open: true},
			{ID: "../x", Kind: thread.KindDirective, Directive: "c", CreatedAt: h.now, DeletedAt: h.now, Open: true},
		},
		Days: map[int64]thread.Micros{h.now.UnixMilli() / (24 * time.Hour).Milliseconds(): 7},
	}
	h.noError(h.RestoreGone(h.ctx, gone))
	h.restore(store.Restored{Record: h.record("r", thread.Completed), Budget: &store.Budget{
		ThreadID: "r", MaxSpend: 100, Gone: 7, CreatedAt: h.now, UpdatedAt: h.now,
	}})
	h.restoreGone(gone, "r", "c-1")
	h.gone("c-1")
	if got := h.deletions(true); !slices.Equal(got, []thread.ID{"c-1"}) {
		h.Errorf("to be gone on with: %v", got)
	}
}
