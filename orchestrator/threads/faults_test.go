package threads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestFaultOfLabel: what is wrong with a name is told alone, without what was being done to
// which thread.
func TestFaultOfLabel(t *testing.T) {
	t.Parallel()
	_, err := thread.ParseName("\x1b")
	fault := tool.AsFault(Fault(fmt.Errorf("label thread x-1: %w", err)))
	if want := "the name has the control character U+001B"; fault.Code != tool.CodeBadArguments || fault.Message != want {
		t.Errorf("%s: %q, want %q", fault.Code, fault.Message, want)
	}
}

// TestFaultsOfOthers: what others have done to a thread at the same time is told by a
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

// TestHintOfNoProvider: what a model is told to do fits why no model can be had.
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
