package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// requestKey makes a key that a thread's model has chosen the thread's own, for
// two threads may well choose the same. Those of one chain do the same work, and
// the next must not start again what one has started.
func (c *Controller) requestKey(ctx context.Context, caller action.Caller, key string) (string, error) {
	if key == "" || !caller.InThread {
		return key, nil
	}
	rec, err := c.Threads.Store.Get(ctx, caller.Env.ThreadID)
	return string(cmp.Or(rec.ChainRootID, caller.Env.ThreadID)) + " " + key, err
}

// startedBefore returns the thread that a request key names, or nil. One that names
// another call is a [store.ErrKeyReused].
func (c *Controller) startedBefore(ctx context.Context, n store.NewThread) (*thread.Record, error) {
	if n.RequestKey == "" {
		return nil, nil
	}
	rec, err := c.Threads.Store.ByRequestKey(ctx, n.RequestKey)
	if errors.Is(err, thread.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		err = store.SameCall(rec, n)
	}
	if err != nil {
		return nil, err
	}
	return &rec, nil
}

// keyedCall is what a request key stands for, beside item and kind.
type keyedCall struct {
	Inputs map[string]any `json:"inputs,omitempty"`
	Model  string         `json:"model,omitempty"`
	Limits item.LimitSet  `json:"limits,omitempty"`
	// Workspace is left out where none is asked for, as in keys of before there were any.
	Workspace string `json:"workspace,omitempty"`
}

// hash is the same for calls that mean the same.
func (k keyedCall) hash() string {
	maps.DeleteFunc(k.Inputs, func(_ string, v any) bool { return v == nil }) // models send null for what they leave out
	text, err := json.Marshal(k)                                              // with the keys in order
	if err != nil {
		return "" // a call that JSON cannot hold is refused further on
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// callHash names the call that starts a directive. Values of secret inputs have no
// part in it: a hash would let them be guessed. It is empty when nobody knows which
// those are, or the limits are none; the key then names the item alone.
func (c *Controller) callHash(req action.StartRequest) string {
	if req.RequestKey == "" {
		return ""
	}
	found, err := c.Planner.Resolver.Find(item.Directive, req.Directive)
	if err != nil {
		return ""
	}
	doc, err := found.Directive()
	if err != nil {
		return ""
	}
	call := keyedCall{Inputs: maps.Clone(req.Inputs), Model: req.Model, Workspace: req.Workspace}
	if call.Limits, err = limit.ParseOverrides(req.Limits); err != nil {
		return ""
	}
	for _, in := range doc.Inputs {
		if in.Secret {
			delete(call.Inputs, in.Name)
		}
	}
	return call.hash()
}
