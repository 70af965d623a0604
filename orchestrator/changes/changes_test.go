package changes_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/orchestrator/changes"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a registry whose threads have no process, and a feed of its changes.
type scene struct {
	testing.TB
	ctx   context.Context //nolint:containedctx // of the test
	store *sqlite.Store
	feed  *changes.Feed
	now   time.Time

	fenceID thread.ID // works a turn for each fence
	fences  int

	mu    sync.Mutex
	heard []changes.Topic
	woken chan struct{}
}

func newScene(t testing.TB) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s, err := sqlite.Open(ctx, t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sc := &scene{TB: t, ctx: ctx, store: s, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), woken: make(chan struct{}, 1)}
	all := threads.New(threads.Deps{Store: s, Life: &life.Local{}, Now: func() time.Time { return sc.now }})
	sc.feed = &changes.Feed{Threads: all, Every: time.Millisecond}
	t.Cleanup(func() {
		sc.feed.Close()
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	})
	return sc
}

// hear listens to a topic.
func (s *scene) hear(topic changes.Topic) (stop func()) {
	s.Helper()
	stop, err := s.feed.Listen(s.ctx, topic, func(bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = append(s.heard, topic)
		select {
		case s.woken <- struct{}{}:
		default:
		}
	})
	if err != nil {
		s.Fatal(err)
	}
	return stop
}

// await returns what was heard since, when a topic was.
func (s *scene) await(topic changes.Topic) []changes.Topic {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	for {
		s.mu.Lock()
		heard := s.heard
		if slices.Contains(heard, topic) {
			s.heard = nil
			s.mu.Unlock()
			return heard
		}
		s.mu.Unlock()
		select {
		case <-s.woken:
		case <-ctx.Done():
			s.Fatalf("nobody told of %v, but of %v", topic, heard)
		}
	}
}

func (s *scene) start(n store.NewThread) thread.ID {
	s.Helper()
	n.Kind, n.Model, n.MaxSpawns, n.Now = thread.KindDirective, "fake/model", 100, s.now
	rec, _, err := store.Register(s.ctx, s.store, n, nil)
	if err != nil {
		s.Fatal(err)
	}
	if n.ContinuationOf != "" {
		if err := s.store.Link(s.ctx, n.ContinuationOf, rec.ThreadID, s.now); err != nil {
			s.Fatal(err)
		}
	}
	s.apply(store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "elsewhere"}, s.now))
	return rec.ThreadID
}

func (s *scene) apply(c store.Change) {
	s.Helper()
	if _, err := s.store.Runner(c.ID(), "").Apply(s.ctx, c); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) end(id thread.ID) {
	s.Helper()
	c, err := store.Finished(id, thread.Outcome{State: thread.Completed}, nil, s.now)
	if err != nil {
		s.Fatal(err)
	}
	s.apply(c)
}

func (s *scene) spend(id thread.ID, turns int) {
	s.Helper()
	if err := s.store.Runner(id, "").RecordCost(s.ctx, thread.Cost{Turns: turns}, 1); err != nil {
		s.Fatal(err)
	}
}

// fence has everything that was committed before told, and forgets it.
func (s *scene) fence() {
	s.Helper()
	if s.fenceID == "" {
		s.fenceID = s.start(store.NewThread{Directive: "fence"})
	}
	stop := s.hear(of(s.fenceID, changes.Transcript))
	defer stop()
	for range 2 { // with the second look, everything of the first has been told
		s.fences++
		s.spend(s.fenceID, s.fences)
		s.await(of(s.fenceID, changes.Transcript))
	}
}

func of(id thread.ID, a changes.Aspect) changes.Topic { return changes.Topic{ID: id, Aspect: a} }

func all(a changes.Aspect) changes.Topic { return changes.Topic{Aspect: a} }

// TestDeletedIsTold: listeners of a thread that is deleted are told so, once, and
// then of nothing; the set of threads has changed.
func TestDeletedIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	before, id := s.start(store.NewThread{Directive: "before"}), s.start(store.NewThread{Directive: "one"})
	s.end(before)
	s.end(id)
	remove := func(id thread.ID) {
		t.Helper()
		refused, err := s.store.Delete(s.ctx, [][]thread.ID{{id}}, s.now)
		if err != nil || refused[0] != nil {
			t.Fatal(refused, err)
		}
	}
	remove(before) // before anybody listens
	defer s.hear(all(changes.Set))()
	stop := s.hear(of(id, changes.Result))
	s.fence()
	remove(id)
	heard := s.await(of(id, changes.Result))
	if !slices.Contains(heard, all(changes.Set)) {
		heard = append(heard, s.await(all(changes.Set))...)
	}
	if slices.ContainsFunc(heard, func(topic changes.Topic) bool { return topic.ID == before }) {
		t.Errorf("heard %v", heard)
	}
	stop() // it has ended already
	s.fence()
	if n := s.feed.Listening(); n != 1 {
		t.Errorf("%d listen", n)
	}
}

func TestWhatChangesIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	parent := s.start(store.NewThread{Directive: "parent"})
	child := s.start(store.NewThread{Directive: "child", ParentID: parent})
	ended := s.start(store.NewThread{Directive: "ended"})
	s.end(ended)
	everything := []changes.Topic{all(changes.Board), all(changes.Set)}
	for _, id := range []thread.ID{parent, child, ended} {
		for _, a := range []changes.Aspect{changes.Transcript, changes.Result, changes.Cost, changes.Chain} {
			everything = append(everything, of(id, a))
		}
	}
	for _, topic := range everything {
		defer s.hear(topic)()
	}
	tests := []struct {
		name string
		do   func()
		last changes.Topic
		want []changes.Topic
	}{
		{
			"a thread works", func() { s.spend(child, 1) }, all(changes.Board),
			[]changes.Topic{
				all(changes.Board), of(child, changes.Transcript), of(child, changes.Cost), of(child, changes.Chain), of(parent, changes.Cost),
			},
		},
		{
			"a thread ends", func() { s.end(child) }, of(child, changes.Result),
			[]changes.Topic{
				all(changes.Board), all(changes.Set), of(child, changes.Transcript), of(child, changes.Cost), of(child, changes.Chain),
				of(child, changes.Result), of(parent, changes.Cost),
			},
		},
		{
			"a thread that has ended is continued", func() { s.start(store.NewThread{Directive: "ended", ContinuationOf: ended}) },
			of(ended, changes.Result),
			[]changes.Topic{
				all(changes.Board), all(changes.Set), of(ended, changes.Result), of(ended, changes.Cost), of(ended, changes.Chain),
			},
		},
		{
			"a thread asks", func() {
				err := s.store.Runner(parent, "").Ask(s.ctx, thread.Question{
					ID: "q", ThreadID: parent, Kind: thread.AskLimit, Code: "turns_exceeded", Text: "more?",
					Options: []thread.Decision{thread.Stop}, Default: thread.Stop, AskedAt: s.now, DeadlineAt: s.now.Add(time.Hour),
				})
				if err != nil {
					t.Fatal(err)
				}
			}, of(parent, changes.Transcript),
			[]changes.Topic{all(changes.Board), of(parent, changes.Transcript), of(parent, changes.Cost), of(parent, changes.Chain)},
		},
	}
	for _, tt := range tests {
		s.fence()
		tt.do()
		got := s.await(tt.last)
		for _, topic := range tt.want {
			if !slices.Contains(got, topic) {
				t.Errorf("%s: not told of %v, only of %v", tt.name, topic, got)
			}
		}
		for _, topic := range got {
			if !slices.Contains(tt.want, topic) {
				t.Errorf("%s: told of %v", tt.name, topic)
			}
		}
	}
}

// A thread that was started and has ended between two looks is told all the same.
func TestShortThreadIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.feed.Every = 300 * time.Millisecond
	never := thread.NewID("work", s.now, 1)
	defer s.hear(of(never, changes.Result))()
	defer s.hear(of("never/was", changes.Result))()
	s.fence() // the rest after this look begins
	if got := s.start(store.NewThread{Directive: "work"}); got != never {
		t.Fatalf("the thread is %s, want %s", got, never)
	}
	s.end(never)
	for _, topic := range s.await(of(never, changes.Result)) {
		if topic.ID != never {
			t.Errorf("told of %v", topic)
		}
	}
}

// TestAttackManySubscriptions: a client subscribes to a thousand resources of threads that never were, ended or work.
// Nothing is done for each of them, each is told once for each look, and nothing is left when it unsubscribes.
func TestAttackManySubscriptions(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start(store.NewThread{Directive: "work"})
	var stops []func()
	for i := range 1000 {
		stops = append(stops, s.hear(of(thread.ID(fmt.Sprintf("never/was-%d", i)), changes.Transcript)))
		stops = append(stops, s.hear(of(id, changes.Transcript)))
	}
	s.fence()
	s.spend(id, 1)
	s.await(of(id, changes.Transcript))
	for _, stop := range stops {
		stop()
		stop() // twice is once
	}
	s.mu.Lock()
	s.heard = nil // what was told before
	s.mu.Unlock()
	s.fence()
	defer s.hear(all(changes.Set))()
	s.end(id)
	told := slices.DeleteFunc(s.await(all(changes.Set)), func(topic changes.Topic) bool { return topic == all(changes.Set) })
	if len(told) > 1 { // one was being told while it left
		t.Errorf("told of %d topics after all have left: %v", len(told), told[:2])
	}
}

func TestClosedFeedSaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	over := make(chan bool, 1)
	stop, err := s.feed.Listen(s.ctx, all(changes.Board), func(last bool) { over <- last })
	if err != nil {
		t.Fatal(err)
	}
	s.feed.Close()
	if !<-over {
		t.Error("a feed that is closed does not say that it is over")
	}
	stop()
	if _, err := s.feed.Listen(s.ctx, all(changes.Board), func(bool) {}); err == nil {
		t.Error("a feed that is closed is listened to")
	}
}
