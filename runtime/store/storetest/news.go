package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var newsTests = []test{
	{"ends and questions are news, in their order", newsInOrder},
	{"a thread that another continues has not ended", newsOfChain},
	{"a client is told of what it has started", newsOfClient},
	{"a client is told of open questions below what it has started", newsOfQuestions},
	{"another client inherits what goes on and what is untold", newsInherited},
	{"each end is news once, whoever settles it", newsOnce},
	{"a notice is claimed, and ended, once", newsNotices},
	{"only notices that are wanted are due", newsWanted},
	{"the budget of a thread is news once", newsOfBudget},
	{"news wake", newsWake},
}

// editor is a client that threads are started for.
var editor = thread.Origin{Client: "editor", Key: "k1"}

// begun is a running thread that a client has started; parent may be empty.
func (h *harness) begun(directive string, parent thread.ID, by thread.Origin) thread.ID {
	h.Helper()
	n := h.newThread(directive, parent)
	n.Origin = by
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	h.apply(store.Claimed(rec.ThreadID, thread.Process{PID: 4711, Host: "host"}, h.now))
	return rec.ThreadID
}

func (h *harness) end(id thread.ID, as thread.State) {
	h.Helper()
	h.apply(h.finished(id, as))
}

// heard is what has come to pass, in words.
func heard(list []thread.News) []string {
	words := []string{}
	for _, n := range list {
		words = append(words, fmt.Sprintf("%s %s%s", n.Kind, n.ThreadID, n.QuestionID))
	}
	return words
}

func (h *harness) wantNews(what string, list []thread.News, err error, want ...string) {
	h.Helper()
	h.noError(err)
	if got := heard(list); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		h.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (h *harness) wantUntold(key string, want ...string) []thread.News {
	h.Helper()
	list, err := h.Untold(h.ctx, key)
	h.wantNews("untold to "+key, list, err, want...)
	return list
}

func newsInOrder(h *harness) {
	last, err := h.LastNews(h.ctx)
	h.noError(err)
	if last != 0 {
		h.Errorf("an empty store has news %d", last)
	}
	a, b, c := h.running("a", ""), h.running("b", ""), h.running("c", "")
	h.end(b, thread.Completed)
	h.ask(h.question("q", a))
	h.end(a, thread.Error)
	h.end(c, thread.Cancelled)
	list, err := h.News(h.ctx, 0, 10)
	h.wantNews("news", list, err, "ended "+string(b), "asked "+string(a)+"q", "ended "+string(a), "ended "+string(c))
	for i := 1; i < len(list); i++ {
		if list[i].Seq <= list[i-1].Seq || list[i].At.IsZero() {
			h.Errorf("news %d: %+v", i, list[i])
		}
	}
	list, err = h.News(h.ctx, list[0].Seq, 2)
	h.wantNews("a page behind the first", list, err, "asked "+string(a)+"q", "ended "+string(a))
	if last, err = h.LastNews(h.ctx); err != nil || last != list[1].Seq+1 {
		h.Errorf("last is %d (%v), want %d", last, err, list[1].Seq+1)
	}
}

func newsOfChain(h *harness) {
	id := h.begun("a", "", editor)
	next := h.successor(id, true)
	h.apply(h.continued(id, next))
	h.wantUntold(editor.Key)
	h.apply(store.Claimed(next, thread.Process{PID: 4711, Host: "host"}, h.now))
	h.end(next, thread.Completed)
	h.wantUntold(editor.Key, "ended "+string(next))
}

func newsOfClient(h *harness) {
	mine := h.begun("a", "", editor)
	child := h.begun("child", mine, thread.Origin{})
	other := h.begun("b", "", thread.Origin{Client: "editor", Key: "k2"})
	nobody := h.running("c", "")
	for _, id := range []thread.ID{child, mine, other, nobody} {
		h.end(id, thread.Completed)
	}
	list := h.wantUntold(editor.Key, "ended "+string(mine))
	h.wantUntold("")
	h.noError(h.Tell(h.ctx, nil))
	h.wantUntold(editor.Key, "ended "+string(mine))
	h.noError(h.Tell(h.ctx, []int64{list[0].Seq}))
	h.wantUntold(editor.Key)
	h.wantUntold("k2", "ended "+string(other))
}

func newsOfQuestions(h *harness) {
	mine := h.begun("a", "", editor)
	child := h.begun("child", mine, thread.Origin{})
	h.ask(h.question("q1", child))
	h.ask(h.question("q1", child)) // repeated
	h.ask(h.question("q2", mine))
	h.wantUntold(editor.Key, "asked "+string(child)+"q1", "asked "+string(mine)+"q2")
	_, err := h.Answer(h.ctx, "q2", thread.Answer{Decision: thread.Stop, By: "Ada", At: h.now})
	h.noError(err)
	h.wantUntold(editor.Key, "asked "+string(child)+"q1")
	h.end(child, thread.Cancelled)
	h.wantUntold(editor.Key)
}

func newsInherited(h *harness) {
	ended, goesOn := h.begun("a", "", editor), h.begun("b", "", editor)
	h.end(ended, thread.Completed)
	told := h.begun("c", "", thread.Origin{Client: "editor", Key: "k3"})
	h.end(told, thread.Completed)
	h.noError(h.Tell(h.ctx, []int64{h.wantUntold("k3", "ended "+string(told))[0].Seq}))

	for key, want := range map[string]bool{editor.Key: true, "k3": false, "": false} {
		if works, err := h.Works(h.ctx, key); err != nil || works != want {
			h.Errorf("threads of %q work: %v (%v)", key, works, err)
		}
	}
	keys, err := h.Heirless(h.ctx, "editor")
	h.noError(err)
	if !slices.Equal(keys, []string{editor.Key}) {
		h.Errorf("clients with something left: %q", keys)
	}
	if keys, err := h.Heirless(h.ctx, "shell"); err != nil || len(keys) > 0 {
		h.Errorf("another program has %q (%v)", keys, err)
	}
	h.noError(h.Inherit(h.ctx, editor.Key, thread.Origin{Client: "editor", Key: "k2"}))
	h.end(goesOn, thread.Error)
	h.wantUntold(editor.Key)
	h.wantUntold("k2", "ended "+string(ended), "ended "+string(goesOn))
}

func newsOnce(h *harness) {
	id := h.begun("a", "", editor)
	h.end(id, thread.Completed)
	_, _ = h.Apply(h.ctx, h.finished(id, thread.Error)) // refused
	h.wantUntold(editor.Key, "ended "+string(id))
}

func newsNotices(h *harness) {
	id := h.running("a", "")
	h.end(id, thread.Completed)
	due := func(since time.Time) []store.Notice {
		h.Helper()
		list, err := h.DueNotices(h.ctx, store.NoticeQuery{Since: since, Kinds: []thread.NewsKind{thread.Ended}, Most: 10})
		h.noError(err)
		return list
	}
	list := due(time.UnixMilli(1))
	if len(list) != 1 || list[0].Claimed || list[0].ThreadID != id {
		h.Fatalf("due: %+v", list)
	}
	if old := due(list[0].At.Add(time.Millisecond)); len(old) > 0 {
		h.Errorf("due after it came to pass: %+v", old)
	}
	h.noError(h.ClaimNotice(h.ctx, list[0].Seq))
	if list = due(time.UnixMilli(1)); len(list) != 1 || !list[0].Claimed {
		h.Errorf("claimed: %+v", list)
	}
	h.noError(h.EndNotice(h.ctx, list[0].Seq))
	h.noError(h.ClaimNotice(h.ctx, list[0].Seq)) // too late
	if list = due(time.UnixMilli(1)); len(list) > 0 {
		h.Errorf("ended: %+v", list)
	}
}

func newsWanted(h *harness) {
	root := h.running("root", "")
	child := h.running("child", root)
	h.ask(h.question("q1", child))
	h.ask(h.question("q2", root))
	first, err := h.NoteBudget(h.ctx, root, h.now)
	h.noError(err)
	h.end(child, thread.Completed)
	h.end(root, thread.Completed)
	if !first {
		h.Fatal("the budget was noted before")
	}
	all := []thread.NewsKind{thread.Asked, thread.Budget80, thread.Ended}
	for _, c := range []struct {
		name string
		store.NoticeQuery
		want []string
	}{
		{"all", store.NoticeQuery{Kinds: all, Children: true}, []string{
			"asked " + string(child) + "q1", "asked " + string(root) + "q2", "budget_80 " + string(root), "ended " + string(child), "ended " + string(root),
		}},
		{"of roots", store.NoticeQuery{Kinds: all}, []string{"asked " + string(root) + "q2", "budget_80 " + string(root), "ended " + string(root)}},
		{"one kind", store.NoticeQuery{Kinds: all[2:], Children: true}, []string{"ended " + string(child), "ended " + string(root)}},
		{"one kind, of roots", store.NoticeQuery{Kinds: all[2:]}, []string{"ended " + string(root)}},
		{"one of roots: what is not wanted takes no place", store.NoticeQuery{Kinds: all[1:], Most: 1}, []string{"budget_80 " + string(root)}},
		{"no kind", store.NoticeQuery{Children: true}, nil},
		{"none that there is", store.NoticeQuery{Kinds: []thread.NewsKind{"never"}, Children: true}, nil},
	} {
		c.Since, c.Most = time.UnixMilli(1), cmp.Or(c.Most, 10)
		due, err := h.DueNotices(h.ctx, c.NoticeQuery)
		list := make([]thread.News, len(due))
		for i, n := range due {
			list[i] = n.News
		}
		h.wantNews(c.name, list, err, c.want...)
	}
}

func newsOfBudget(h *harness) {
	id := h.begun("a", "", editor)
	for _, want := range []bool{true, false} {
		if first, err := h.NoteBudget(h.ctx, id, h.now); err != nil || first != want {
			h.Errorf("first %v (%v), want %v", first, err, want)
		}
	}
	list, err := h.News(h.ctx, 0, 10)
	h.wantNews("news", list, err, "budget_80 "+string(id))
	h.wantUntold(editor.Key)
}

func newsWake(h *harness) {
	id := h.begun("a", "", editor)
	changes := h.Changes(h.ctx)
	h.end(id, thread.Completed)
	for {
		if list, err := h.Untold(h.ctx, editor.Key); err != nil || len(list) == 1 {
			h.noError(err)
			return
		}
		select {
		case <-changes:
		case <-h.ctx.Done():
			h.Fatal("nobody was woken")
		}
	}
}
