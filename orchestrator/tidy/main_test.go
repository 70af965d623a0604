package tidy_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

type ctx = context.Context

// TestMain runs the tests or, with the arguments of [actor], another process of theirs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "actor" {
		if err := actor(os.Args[2:]); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// actor does something with a thread of a project, and dies when it comes to a crash
// point, or to that for the nth time: "point#n".
func actor(args []string) error {
	project, id, deed := args[0], thread.ID(args[1]), deeds[args[3]]
	point, nth, _ := strings.Cut(args[2], "#")
	left, err := strconv.Atoi(cmp.Or(nth, "1"))
	if err != nil {
		return err
	}
	t, _, err := openTidier(context.Background(), project, func() time.Time { return testTime })
	if err != nil {
		return err
	}
	t.Threads.Crashpoints = func(at thread.Crashpoint) {
		if string(at) != point {
			return
		}
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it is delivered
		}
	}
	t.Threads.Finisher.Crashpoints = t.Threads.Crashpoints
	return deed(context.Background(), t, id)
}

// deeds are what an actor does.
var deeds = map[string]func(context.Context, *tidy.Tidier, thread.ID) error{
	"delete": func(ctx context.Context, t *tidy.Tidier, id thread.ID) error {
		told, err := t.Delete(ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true})
		if err == nil {
			_, err = fmt.Printf("%t %s\n", told.Success, told.DeletedAt)
		}
		return err
	},
	"end": func(ctx context.Context, t *tidy.Tidier, id thread.ID) error {
		return end(ctx, t, id, thread.Completed, 7)
	},
	"sum up": func(ctx context.Context, t *tidy.Tidier, id thread.ID) error {
		rec, err := t.Threads.Store.Get(ctx, id)
		if err != nil {
			return err
		}
		return t.Threads.Finisher.WriteSummary(rec, "what it did")
	},
}

func lifeOf(s *scene, id thread.ID) life.Key {
	s.Helper()
	rec, err := s.store.Get(s.ctx, id)
	s.noError(err)
	return life.Of(rec)
}
