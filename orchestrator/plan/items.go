package plan

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// WorkingBy is the call with the items that a thread works by, for what is started below
// it: its snapshot, wherever that lies, and nothing that differs from it. Without a thread,
// or a snapshot, it is the call itself.
func (c *Call) WorkingBy(ctx context.Context, id thread.ID) (*Call, error) {
	all := c.Threads.Snapshots
	if all == nil || id == "" {
		return c, nil
	}
	meta, err := c.Threads.OwnMeta(id)
	if err != nil || meta.Snapshot == "" {
		return c, nil //nolint:nilerr // the error is reported where the parent is loaded
	}
	name := snapshot.Hash(meta.Snapshot)
	folder, err := all.Below(ctx, name)
	if err != nil {
		return nil, threads.ItemsFault(err)
	}
	pins, err := all.Pins(ctx, name)
	if err != nil {
		return nil, threads.ItemsFault(err)
	}
	planner, now := *c.Planner, *c.Call
	now.Trust = now.Trust.PinnedBy(pins.Check)
	if folder != "" {
		planner.Resolver = planner.Resolver.At(snapshot.RootsOf(folder))
	}
	return &Call{&planner, &now}, nil
}

// TakeItems decides which items the thread works by: a child by those of its parent, a
// root by a snapshot of what there is now, where the settings ask for one. The directive
// must be among them as it was planned.
func (c *Call) TakeItems(ctx context.Context, p *Plan) error {
	all := c.Threads.Snapshots
	if all == nil || p.Parent == nil && !c.wantsSnapshot(all.IsShared()) || p.Parent != nil && p.Parent.Snapshot == "" {
		return nil
	}
	var pins *snapshot.Pins
	var err error
	if p.Parent != nil {
		pins, err = all.Pins(ctx, snapshot.Hash(p.Parent.Snapshot))
	} else {
		pins, err = all.Take(ctx)
	}
	if err == nil {
		err = pins.Check(trust.SubjectOf(p.Found))
	}
	if err != nil {
		return threads.Fault(threads.ItemsFault(err))
	}
	p.snapshot = pins.Name()
	return nil
}

// wantsSnapshot reports whether the settings ask for snapshots. Faults in settings are told
// where the limits are resolved.
func (c *Call) wantsSnapshot(shared bool) bool {
	agent, _, err := c.Config.Agent()
	if err != nil {
		return shared
	}
	switch agent.Threads.Snapshot {
	case config.SnapshotAlways:
		return true
	case config.SnapshotNever:
		return false
	}
	return shared
}

// itemsOf names the snapshot that the thread works by; empty: none.
func (p *Plan) itemsOf() string {
	if p.Parent != nil {
		return p.Parent.Snapshot
	}
	return string(p.snapshot)
}
