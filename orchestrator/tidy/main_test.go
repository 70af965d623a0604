package tidy_test

import (
	"context"
	"fmt"
	"os"
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

// actor deletes a thread of a project, and dies when it comes to a crash point.
func actor(args []string) error {
	project, id, point := args[0], thread.ID(args[1]), thread.Crashpoint(args[2])
	t, _, err := openTidier(context.Background(), project, func() time.Time { return testTime })
	if err != nil {
		return err
	}
	t.Threads.Crashpoints = func(at thread.Crashpoint) {
		if at == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it is delivered
		}
	}
	told, err := t.Delete(context.Background(), tidy.DeleteRequest{ThreadID: id, Agreed: true})
	if err == nil {
		_, err = fmt.Printf("%t %s\n", told.Success, told.DeletedAt)
	}
	return err
}

func lifeOf(s *scene, id thread.ID) life.Key {
	s.Helper()
	rec, err := s.store.Get(s.ctx, id)
	s.noError(err)
	return life.Of(rec)
}
