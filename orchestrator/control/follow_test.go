package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/news"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// follow starts to follow a project and returns what is told, in words, and the end of
// the following.
func (s *scene) follow(f news.Following) (told <-chan string, end func() error) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	words, over := make(chan string, 100), make(chan error, 1)
	if f.Since.IsZero() { // the first news shows that it has begun
		f.Since = testTime
	}
	go func() {
		over <- s.c.News.Follow(ctx, f, func(e news.Event) error {
			words <- fmt.Sprintf("%s %s %s %s", e.Event, e.ThreadID, e.Status, e.QuestionID)
			return nil
		})
	}()
	return words, func() error { cancel(); return <-over }
}

// startAs is start for a client.
func (s *scene) startAs(directive string, parent thread.ID, by thread.Origin) thread.ID {
	s.Helper()
	started, err := s.c.Start(s.ctx, action.Caller{Origin: by}, action.StartRequest{Directive: directive, Parent: parent})
	s.noError(err)
	s.order(started.ThreadID, "claim")
	return started.ThreadID
}

// shoot ends the process of a thread, which has no time for a word.
func (s *scene) shoot(id thread.ID) {
	s.Helper()
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
}

func (s *scene) told(words <-chan string, want string) {
	s.Helper()
	select {
	case got := <-words:
		if got != want {
			s.Errorf("told %q, want %q", got, want)
		}
	case <-s.ctx.Done():
		s.Fatalf("%q was never told", want)
	}
}

// News of a project are ends and questions: of threads that complete, of those that die
// without a word, and of children only what they ask.
func TestFollowNews(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("work", "")
	child := s.start("idle", root)
	words, end := s.follow(news.Following{})
	q := s.asks(child)
	s.told(words, fmt.Sprintf("asked %s running %s", child, q.ID))
	s.order(child, "complete")
	s.order(root, "complete")
	s.told(words, fmt.Sprintf("ended %s completed ", root))
	doomed := s.start("idle", "")
	s.shoot(doomed)
	s.told(words, fmt.Sprintf("ended %s error ", doomed))
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestFollowChoice(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	mine := thread.Process{PID: os.Getpid(), Host: "here"}
	origin := news.Client{Process: mine}.Origin("editor")
	root := s.startAs("work", "", origin)
	child := s.start("idle", root)
	other := s.start("idle", "")
	everything, endOne := s.follow(news.Following{Children: true})
	settled := make(chan struct{}, 100)
	mineOnly, endTwo := s.follow(news.Following{
		Of: func(p thread.Process) bool { return p == mine },
		Settle: func(ctx context.Context) error {
			select {
			case <-settled:
			case <-ctx.Done():
			}
			return ctx.Err()
		},
	})
	for _, id := range []thread.ID{child, other, root} {
		s.order(id, "complete")
		s.told(everything, fmt.Sprintf("ended %s completed ", id))
	}
	for range 10 { // as often as it may have been woken by then
		settled <- struct{}{}
	}
	s.told(mineOnly, fmt.Sprintf("ended %s completed ", root))
	for len(settled) > 0 {
		<-settled
	}
	// News that an answer has told the client wakes nobody.
	answered, woken := s.startAs("idle", "", origin), s.startAs("idle", "", origin)
	s.order(answered, "complete")
	if since, err := s.c.News.Since(s.ctx, origin, nil); err != nil || since.IsEmpty() {
		t.Errorf("the answer: %+v, %v", since, err)
	}
	s.order(woken, "complete")
	for range 10 {
		settled <- struct{}{}
	}
	s.told(mineOnly, fmt.Sprintf("ended %s completed ", woken))
	if err := errors.Join(endOne(), endTwo()); err != nil {
		t.Error(err)
	}
	stopped := errors.New("enough")
	err := s.c.News.Follow(s.ctx, news.Following{Since: testTime}, func(news.Event) error { return stopped })
	if !errors.Is(err, stopped) {
		t.Errorf("one who has had enough: %v", err)
	}
}

// Await is over when there is something to tell, which is told once, or nobody works.
func TestAwait(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	origin := news.Client{Process: thread.Process{PID: os.Getpid(), Host: "here"}}.Origin("editor")
	keys := []string{"another", origin.Key}
	if events, err := s.c.News.Await(s.ctx, keys); err != nil || len(events) > 0 {
		t.Errorf("nobody works: %+v, %v", events, err)
	}
	first, second := s.startAs("idle", "", origin), s.startAs("idle", "", origin)
	for i, id := range []thread.ID{first, second} {
		got := make(chan []news.Event, 1)
		go func() {
			events, err := s.c.News.Await(s.ctx, keys)
			if err != nil {
				t.Error(err)
			}
			got <- events
		}()
		if i == 0 {
			s.order(id, "complete")
		} else {
			s.shoot(id)
		}
		if events := <-got; len(events) != 1 || events[0].ThreadID != id {
			t.Errorf("%s has ended: %+v", id, events)
		}
	}
	if events, err := s.c.News.Await(s.ctx, keys); err != nil || len(events) > 0 {
		t.Errorf("all was told: %+v, %v", events, err)
	}
	cancelled, cancel := context.WithCancel(s.ctx)
	cancel()
	last := s.startAs("idle", "", origin)
	if events, err := s.c.News.Await(cancelled, keys); err != nil || len(events) > 0 {
		t.Errorf("cancelled: %+v, %v", events, err)
	}
	s.order(last, "complete")
}
