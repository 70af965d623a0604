package fanout

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The crash points of a set, in order. Those of its entries are those of starts.
const (
	CrashRegistered thread.Crashpoint = "set.registered" // it has a row, and the starter its life
	CrashReserved   thread.Crashpoint = "set.reserved"   // it has its money
	CrashDescribed  thread.Crashpoint = "set.described"  // its thread.json is there
	CrashOpened     thread.Crashpoint = "set.opened"     // it has its entries, and runs without a process
	CrashEntry      thread.Crashpoint = "set.entry"      // an entry was started
)

// Crashpoints lists the crash points of a set, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashRegistered, CrashReserved, CrashDescribed, CrashOpened, CrashEntry}
}

// register makes a set and opens it: row, money, thread.json, entries. Until it is open
// this process has its life; one that dies on the way leaves a dead thread, and the next
// call makes another set. Before is the last set of the call, if any: of several
// callers who have seen the same one, the first makes the next.
func (m *Mapper) register(ctx context.Context, now *settings.Call, c *call, before thread.ID) (Opened, error) {
	n, err := m.newThread(ctx, c, before)
	if err != nil {
		return Opened{}, threadsFault(err)
	}
	rec, hold, err := m.Queue.Register(ctx, n)
	if err != nil {
		return Opened{}, threadsFault(err)
	}
	if hold == nil {
		return Opened{ID: rec.ThreadID, Existing: true}, nil
	}
	defer func() { _ = hold.Release() }()
	m.Threads.Crashpoints.At(CrashRegistered)
	ctx = context.WithoutCancel(ctx) // from here on it exists
	if err := m.open(ctx, now, c, rec); err != nil {
		return Opened{}, m.Queue.Abandon(ctx, rec, err)
	}
	m.Threads.Crashpoints.At(CrashOpened)
	return Opened{ID: rec.ThreadID}, nil
}

// newThread describes the row of a set, after it is known what of it is done.
func (m *Mapper) newThread(ctx context.Context, c *call, before thread.ID) (store.NewThread, error) {
	waiting, err := m.reuse(ctx, c)
	if err != nil {
		return store.NewThread{}, err
	}
	p := c.first()
	n := store.NewThread{
		Kind: thread.KindSet, Directive: p.Found.ID, Name: c.name(m.Planner.Env), ParentID: p.Request.Parent, Spawns: waiting,
		Model: p.Choice.Ref(), RequestHash: c.content, Now: m.Threads.Now(), Origin: c.caller.Origin,
	}
	if p.Parent != nil {
		n.MaxSpawns, n.Origin = p.Parent.Limits.Spawns, thread.Origin{}
	}
	named := []string{c.scope, string(before)}
	if !c.keyed {
		named = append(named, c.content)
	}
	hash, err := hashOf(named)
	n.RequestKey = "map_threads " + hash
	return n, err
}

// name is that of the set, for people.
func (c *call) name(env map[string]string) string {
	items := "items"
	if len(c.Items) == 1 {
		items = "item"
	}
	return fmt.Sprintf("%d %s: %s", len(c.Items), items, c.first().Name(env))
}

// reuse gives entries the results that are there, and counts those that wait.
func (m *Mapper) reuse(ctx context.Context, c *call) (waiting int, err error) {
	keys := make([]string, len(c.entries))
	for i, e := range c.entries {
		keys[i] = e.Key
	}
	done, err := m.Threads.Store.Completed(ctx, c.scope, keys)
	if err != nil {
		return 0, err
	}
	for i := range c.entries {
		if c.entries[i].Done = done[c.entries[i].Key]; c.entries[i].Done == "" {
			waiting++
		}
	}
	return waiting, nil
}

// open does what is left of opening a registered set.
func (m *Mapper) open(ctx context.Context, now *settings.Call, c *call, rec thread.Record) error {
	spend, err := m.reserve(ctx, now, c, rec.ThreadID)
	if err != nil {
		return err
	}
	m.Threads.Crashpoints.At(CrashReserved)
	meta := c.meta(rec, spend)
	if err := m.Threads.HoldItems(ctx, meta); err != nil {
		return err
	}
	if err := m.Threads.Records.By(rec.ThreadID, rec.Run).Meta().Write(meta); err != nil {
		return err
	}
	m.Threads.Crashpoints.At(CrashDescribed)
	_, err = m.Threads.Store.OpenSet(ctx, rec.ThreadID, rec.Run, store.NewSet{
		Scope: c.scope, Content: c.content, Concurrency: c.Concurrency, Entries: c.entries,
	}, m.Threads.Now())
	return err
}

// meta is the thread.json of the set, from which its entries have rights and limits as
// without it: below a thread the rights are that one's, and the set is no level of
// threads of its own. Entries of a set that is a root have their rights as roots have.
func (c *call) meta(rec thread.Record, spend thread.Micros) thread.Meta {
	meta := c.first().Meta(rec)
	if parent := c.first().Parent; parent != nil {
		meta.Capabilities, meta.Declared, meta.Ceiling = parent.Capabilities, parent.Declared, parent.Ceiling
	}
	meta.Inputs = map[string]any{inputModel: c.Model, "items": len(c.Items), "concurrency": c.Concurrency}
	meta.Limits.Spend, meta.Limits.Spawns = spend, len(c.Items)
	meta.Limits.Depth++
	return meta
}

// inputModel is the input of a set that says which model the call asked for.
const inputModel = "model"
