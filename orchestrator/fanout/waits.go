package fanout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Waits says what the items of a set wait for while none of them works, and what can be done
// about it; empty where they wait for nothing but their turn.
func (m *Mapper) Waits(ctx context.Context, rec thread.Record) string {
	if rec.Kind != thread.KindSet || rec.Status.Terminal() {
		return ""
	}
	set, err := m.Threads.Store.Set(ctx, rec.ThreadID)
	if err != nil || set.Waiting == 0 || set.Working > 0 {
		return ""
	}
	// A look is not held for as long as a command takes that gives a key.
	ctx, cancel := context.WithTimeout(ctx, maxAsked)
	defer cancel()
	return m.waitsFor(ctx, rec)
}

// maxAsked is how long a provider is asked by a look.
const maxAsked = time.Second

// maxWhyBytes bounds what is told of a provider's trouble.
const maxWhyBytes = 300

// waitsFor is why nobody can ask the model of a set now. It names no tool: people read it, too.
func (m *Mapper) waitsFor(ctx context.Context, rec thread.Record) string {
	if rec.Status.Terminal() || !rec.CancelRequestedAt.IsZero() {
		return ""
	}
	why := m.providerAway(ctx, m.Planner.Settings.Begin(), rec)
	if why == nil || ctx.Err() != nil {
		return ""
	}
	start := "they start when that is mended"
	if _, unknown := errors.AsType[*provider.UnknownModelError](why); unknown {
		name, _, _ := strings.Cut(rec.Model, "/")
		start = fmt.Sprintf("they start when the settings have the provider %s again (.ai/config/agent/providers/%s.yaml)", item.Shown(name), item.Shown(name))
	}
	return fmt.Sprintf("%s; %s, or cancel the set and map its items with another model", item.Clip(why.Error(), maxWhyBytes), start)
}
