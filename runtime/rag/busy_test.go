package rag_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// A writer is told which file is held when another process has its turn and does not go
// on; a question is answered all the same.
func TestHeld(t *testing.T) {
	t.Parallel()
	path := pathIn(t.TempDir())
	store(t, open(t, path), row("a", "common"))
	held, err := sharedfile.OpenQueue(path+".lock", sharedfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	release, err := held.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opts := rag.At(path, mark)
	opts.Shared.Patience = sharedfile.Patience{Idle: time.Millisecond}
	x := openWith(t, opts)
	if answer := find(t, x, ask("common")); keys(answer) != "a" {
		t.Errorf("%s", show(answer))
	}
	_, err = x.Store(t.Context(), []rag.Row{row("b", "common")})
	if busy, ok := errors.AsType[*thread.BusyError](err); !ok || busy.Path != path+".lock" {
		t.Errorf("stored: %v", err)
	}
	release()
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // a free turn can take longer than this one waits
		_, err = x.Store(t.Context(), []rag.Row{row("b", "common")})
		if _, busy := errors.AsType[*thread.BusyError](err); !busy {
			break
		}
	}
	if err != nil {
		t.Errorf("stored when nobody holds it: %v", err)
	}
}
