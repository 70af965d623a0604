package fanout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// call is a call that has been checked and has changed nothing yet.
type call struct {
	Request
	caller  action.Caller
	scope   string // within what results may be used again
	keyed   bool   // by a request key
	content string // hash of the call
	plans   []*plan.Plan
	entries []store.NewEntry
}

// first is the plan of the first item, which stands for what all have in common.
func (c *call) first() *plan.Plan { return c.plans[0] }

// check checks a call and each of its items.
func (m *Mapper) check(ctx context.Context, now *settings.Call, caller action.Caller, req Request) (*call, error) {
	if err := checkBounds(&req); err != nil {
		return nil, err
	}
	c := &call{Request: req, caller: caller, keyed: req.RequestKey != ""}
	files := &fileHashes{project: m.Project}
	seen := map[string]int{}
	size := 0
	for i, inputs := range req.Items {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		p, err := m.Planner.In(now).Start(ctx, caller, action.StartRequest{Directive: req.Directive, Inputs: inputs, Model: req.Model})
		if err == nil {
			err = checkPlan(p)
		}
		if err != nil {
			return nil, ofItem(i, len(req.Items), err)
		}
		entry, err := newEntry(p, above(p.Parent), files)
		if err != nil {
			return nil, ofItem(i, len(req.Items), err)
		}
		if twin, twice := seen[entry.Key]; twice {
			return nil, tool.Faultf(tool.CodeBadArguments, "item %d is the same as item %d", i, twin).With("item", i).
				WithHint("give each item once; to run one several times, give it an input that tells the runs apart")
		}
		seen[entry.Key] = i
		if size += len(entry.Inputs); size > maxItemBytes {
			return nil, tool.Faultf(tool.CodeBadArguments, "the items up to item %d have more than %d bytes", i, maxItemBytes).
				WithHint("give paths of files, or call map_threads several times with fewer items")
		}
		c.plans, c.entries = append(c.plans, p), append(c.entries, entry)
	}
	return c, m.identify(ctx, c)
}

// checkBounds refuses what is wrong with the call itself.
func checkBounds(req *Request) error {
	switch n := len(req.Items); {
	case n == 0:
		return tool.Faultf(tool.CodeBadArguments, "items is empty").WithHint("give one object of inputs for each thread")
	case n > MaxItems:
		return TooMany(n)
	case req.Concurrency < 0 || req.Concurrency > MaxConcurrency:
		return tool.Faultf(tool.CodeBadArguments, "concurrency %d is not between 1 and %d", req.Concurrency, MaxConcurrency)
	case req.MaxSpend != nil && *req.MaxSpend <= 0:
		return tool.Faultf(tool.CodeBadArguments, "max_spend must be more than 0")
	}
	req.Concurrency = min(cmp.Or(req.Concurrency, DefaultConcurrency), len(req.Items))
	return nil
}

// TooMany refuses a list of so many items.
func TooMany(n int) *tool.Fault {
	return tool.Faultf(tool.CodeBadArguments, "items has %d entries, and %d are the most", n, MaxItems).
		WithHint("call map_threads several times with fewer items")
}

// checkPlan refuses what one thread may have and a set cannot.
func checkPlan(p *plan.Plan) error {
	switch {
	case len(p.Secrets) > 0:
		return tool.Faultf(tool.CodeUnsupported, "items wait in a file until they are started, and values of secret inputs are kept in none").
			WithHint("start these threads one by one, with rye_execute")
	case p.Late():
		return tool.Faultf(tool.CodeUnsupported, "the last hooks of a thread cannot start a set").WithHint("call map_threads in the thread itself")
	}
	return nil
}

// ofItem says of a refusal which item it is about. It tells alike what is wrong with the
// only one, or with the first as it would be with all.
func ofItem(i, of int, err error) error {
	f := tool.Faultf(tool.CodeBadArguments, "item %d: %w", i, err).With("item", i)
	if known, ok := errors.AsType[*tool.Fault](err); ok {
		f.Code, f.Hint, f.Try = known.Code, known.Hint, known.Try
		for key, value := range known.Details {
			f = f.With(key, value)
		}
	}
	if of > 1 && f.Hint == "" {
		f = f.WithHint("put it right and call again: nothing was started")
	}
	return f
}

// identify names the call: whose results it may use, and what it is.
func (m *Mapper) identify(ctx context.Context, c *call) error {
	owner := ""
	if parent := c.first().Request.Parent; parent != "" {
		rec, err := m.Threads.Store.Get(ctx, parent)
		if err != nil {
			return threadsFault(err)
		}
		owner = string(cmp.Or(rec.ChainRootID, parent))
	}
	c.scope = owner + "\x00" + c.RequestKey
	var err error
	c.content, err = hashOf(struct {
		Directive string           `json:"directive"`
		Model     string           `json:"model"`
		Items     []map[string]any `json:"items"`
	}{c.first().Found.ID, c.Model, c.Items})
	return err
}

// newEntry is the entry of an item that was planned.
func newEntry(p *plan.Plan, above [][]string, files *fileHashes) (store.NewEntry, error) {
	raw, err := json.Marshal(p.Inputs)
	if err != nil {
		return store.NewEntry{}, err
	}
	key, err := keyOf(p, above, files)
	return store.NewEntry{Key: key, Inputs: raw}, err
}

// above are the rights of a parent and of all above it; none of a root.
func above(parent *thread.Meta) [][]string {
	if parent == nil {
		return nil
	}
	return append([][]string{parent.Own()}, parent.Ceiling...)
}

// keyOf is the hash of what the result of an entry depends on: the directive with all
// that it extends, the inputs, the files that the directive declares among them, the
// model and the rights.
func keyOf(p *plan.Plan, above [][]string, files *fileHashes) (string, error) {
	return hashOf(struct {
		Directive string            `json:"directive"`
		Hashes    []string          `json:"hashes"`
		Inputs    map[string]any    `json:"inputs"`
		Files     map[string]string `json:"files"`
		Model     string            `json:"model"`
		Own       []string          `json:"own"`
		Above     [][]string        `json:"above"`
	}{p.Found.ID, p.Hashes(), p.Inputs, files.of(p.Doc, p.Inputs), p.Choice.Ref(), p.Grant.Own, above})
}

// hashOf is the hash of a value by its JSON, whose keys are in order.
func hashOf(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
