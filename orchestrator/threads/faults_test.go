package threads

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestFaultOfLabel: the problem of a name is told alone, without what was being done to
// which thread.
func TestFaultOfLabel(t *testing.T) {
	t.Parallel()
	_, err := thread.ParseName("\x1b")
	fault := tool.AsFault(Fault(fmt.Errorf("label thread x-1: %w", err)))
	if want := "the name has the control character U+001B"; fault.Code != tool.CodeBadArguments || fault.Message != want {
		t.Errorf("%s: %q, want %q", fault.Code, fault.Message, want)
	}
}

// TestFaultsOfOthers: a change of a thread by others at the same time is told by a
// code, and is no failure of ours.
func TestFaultsOfOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want tool.Code
	}{
		{thread.ErrSettled, tool.CodeConflict},
		{&thread.DeletedError{ID: "a-1", At: time.Now()}, tool.CodeNotFound},
		{thread.ErrNotFound, tool.CodeNotFound},
		{store.ErrParentGone, tool.CodeParentGone},
	} {
		if f := Fault(fmt.Errorf("link a-1 to a-2: %w", test.err)); f.Code != test.want || f.Message == "" {
			t.Errorf("%v: %+v, want the code %s", test.err, f, test.want)
		}
	}
}

// TestHintOfNoProvider: the hint for a model fits why no model can be had.
func TestHintOfNoProvider(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"hand on":         &provider.NoProviderError{Variables: []string{"KEY (lab)"}},
		"tell the person": &provider.NoProviderError{Provider: "ollama", Local: []string{"ollama"}},
		"leave the model": &provider.UnknownModelError{Model: "x", Provider: "lab", Tiers: []string{"fast"}},
	} {
		f := Fault(fmt.Errorf("choose: %w", err))
		if f.Code != tool.CodeNoProvider || !strings.Contains(f.Hint, want) {
			t.Errorf("%v: %s, %q", err, f.Code, f.Hint)
		}
	}
}

// away is what an engine says when its server cannot be reached.
type away struct{}

func (away) Error() string { return "the server is away" }
func (away) Unwrap() error { return store.ErrAway }
func (away) Try() string   { return "start it" }

// TestFaultOfAway: a model is told by a code that the store is away, and what that means for
// the thread that it has just started; a person is told what to do. An error that tells it
// already stays as it is.
func TestFaultOfAway(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("list threads: %w", away{})
	for name, f := range map[string]*tool.Fault{"fault": Fault(err), "with": tool.AsFault(WithAway(err)), "of a fault": tool.AsFault(WithAway(Fault(err)))} {
		if f.Code != tool.CodeStore || f.Message != "list threads: the server is away" || !strings.Contains(f.Hint, "items can be used") || f.Try != "start it" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if other := fmt.Errorf("something else"); !errors.Is(WithAway(other), other) || WithAway(nil) != nil {
		t.Error("another error is told as if the store were away")
	}
	shared := Fault(err)
	f := GoesOnFault("a-1", shared)
	if f.Details["thread_id"] != thread.ID("a-1") || !strings.HasPrefix(f.Hint, "thread a-1 was started and may go on: wait_threads with this thread_id. Nothing can be done") || f.Code != tool.CodeStore {
		t.Errorf("of a thread that was started: %+v", f)
	}
	if shared.Details != nil || strings.Contains(shared.Hint, "a-1") {
		t.Errorf("others are told %+v", shared)
	}
}
