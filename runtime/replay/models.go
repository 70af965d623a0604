package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// models are those of the recording, all of them behind one client.
type models struct {
	client llm.Client
	thread *recording.Thread
}

// Choose is the model that the thread was started with.
func (m models) Choose(context.Context, provider.Want) (provider.Choice, error) {
	return m.choice(m.thread.Meta.Model), nil
}

// Fallback is the other model that the thread asked.
func (m models) Fallback(_ context.Context, w provider.Want) (provider.Choice, bool, error) {
	for _, asked := range m.thread.Settings.Models {
		if asked.Ref != m.thread.Meta.Model {
			return m.choice(asked.Ref), true, nil
		}
	}
	switch w.Fallback {
	case "":
		return provider.Choice{}, false, nil
	case m.thread.Meta.Model:
		return m.choice(w.Fallback), true, nil
	}
	return provider.Choice{}, false, fmt.Errorf("the fallback %s is not on record", w.Fallback)
}

// Open implements [loop.Models].
func (m models) Open(context.Context, provider.Choice) (llm.Client, func() error, error) {
	return m.client, func() error { return nil }, nil
}

// defaultOutput is what an answer may be where no call is on record.
const defaultOutput = 4096

// choice is a model as it was, by what its calls were given.
func (m models) choice(ref string) provider.Choice {
	var was recording.Model
	if i := slices.IndexFunc(m.thread.Settings.Models, func(a recording.Model) bool { return a.Ref == ref }); i >= 0 {
		was = m.thread.Settings.Models[i]
	}
	name, id, _ := strings.Cut(ref, "/")
	output := cmp.Or(was.MaxOutput, defaultOutput)
	return provider.Choice{
		Provider: name, ToolUse: config.ToolUseNative, Vision: true, MaxOutput: output,
		Model: llm.Model{ID: id, ContextWindow: was.ContextWindow, MaxOutputTokens: output, Price: was.Price, Priced: true},
	}
}

// successors are those of a thread that hands over: the one on record, which is not
// started.
type successors struct{ thread *recording.Thread }

// MakeSuccessor implements [handoff.Maker].
func (s successors) MakeSuccessor(context.Context, handoff.Request) (handoff.Successor, error) {
	if o := s.thread.Meta.Outcome; o != nil && o.Handoff != nil {
		return successor(*o.Handoff), nil
	}
	return successor{NewThreadID: s.thread.ThreadID + "-next"}, nil
}

type successor thread.Handoff

// Handoff implements [handoff.Successor].
func (s successor) Handoff() thread.Handoff { return thread.Handoff(s) }

// Start implements [handoff.Successor].
func (s successor) Start(context.Context) error { return nil }

// GiveUp implements [handoff.Successor].
func (s successor) GiveUp(context.Context, error) {}

// stoppedFromOutside reports whether something else than its work ended the thread: the
// recording stops there, and a replay that comes to that point has done all that was done.
func stoppedFromOutside(t *recording.Thread) bool {
	if !t.Ended {
		return true
	}
	o := t.Meta.Outcome
	switch {
	case o.Error == nil:
		return o.State == thread.Cancelled
	case o.State == thread.Cancelled:
		return !strings.Contains(o.Error.Message, " by hook ")
	}
	switch o.Error.Code {
	case thread.CodeDied, thread.CodeStoreAway, "duration_exceeded", "transcript_lost", "disk_full":
		return true
	}
	return false
}
