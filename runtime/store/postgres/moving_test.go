package postgres_test

import (
	"errors"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
)

// TestMoving: while threads are being moved to a project it is refused to all but who moves
// them; a project that was put aside under those who use it is told of as moved.
func TestMoving(t *testing.T) {
	t.Parallel()
	url := pgtest.Server(t)
	server := connect(t, url)
	before := open(t, server, "example.org/team/work")
	const from = "host:/it's here"
	if err := server.SetMoving(t.Context(), "example.org/team/work", from); err != nil {
		t.Fatal(err)
	}
	if got, err := server.Moving(t.Context(), "example.org/team/work"); err != nil || got != from {
		t.Errorf("it is moved from %q, %v", got, err)
	}
	refused := func(how string, err error) {
		if moving, is := errors.AsType[*store.MovingError](err); !is || moving.From != from || !errors.Is(err, store.ErrAway) {
			t.Errorf("%s: %v", how, err)
		}
	}
	_, err := server.Find(t.Context(), "example.org/team/work")
	refused("find", err)
	_, err = server.Project(t.Context(), "example.org/team/work")
	refused("make", err)
	_, _, err = postgres.Lookup(t.Context(), postgres.Options{URL: url}, "example.org/team/work")
	refused("look up", err)
	mover, st, err := postgres.Lookup(t.Context(), postgres.Options{URL: url, Moving: true}, "example.org/team/work")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mover.SetMoving(t.Context(), "example.org/team/work", ""), st.Close(), mover.Close()); err != nil {
		t.Fatal(err)
	}
	open(t, server, "example.org/team/work")
	if _, err := server.Retire(t.Context(), "example.org/team/work", from); err != nil {
		t.Fatal(err)
	}
	refusedMoved(t, server)
	_, err = before.Get(t.Context(), "no-such-thread")
	if !errors.Is(err, postgres.ErrMoved) || !errors.Is(err, store.ErrAway) {
		t.Errorf("of what was put aside: %v", err)
	}
}

// refusedMoved: a project whose threads were moved is not made anew, and another is.
func refusedMoved(t *testing.T, server *postgres.Server) {
	t.Helper()
	if st, err := server.Find(t.Context(), "example.org/team/work"); err != nil || st != nil {
		t.Errorf("to look for it: %v, %v", st, err)
	}
	_, err := server.Project(t.Context(), "example.org/team/work")
	if moved, is := errors.AsType[*store.MovedError](err); !is || moved.To != "host:/it's here" || moved.Kept == "" {
		t.Errorf("made anew: %v", err)
	}
	open(t, server, "example.org/team/other")
}
