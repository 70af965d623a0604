package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Receipt returns a signed summary of a thread that has ended, which can be
// checked without the project: [audit.OpenReceipt]. A thread that does not verify
// gets none, whatever transcript_integrity says.
func (c *Checker) Receipt(ctx context.Context, id thread.ID) ([]byte, error) {
	key, err := c.Key()
	if err != nil {
		return nil, action.Fault(err)
	}
	rec, report, err := c.verify(ctx, id, false, true)
	switch {
	case err != nil:
		return nil, threads.Fault(err)
	case !rec.Status.Terminal():
		return nil, tool.Faultf(tool.CodeUnsupported, "thread %s is %s; a receipt is for one that has ended", id, rec.Status)
	case !report.Good() || report.Meta == nil:
		return nil, unvouched(id, id)
	}
	r := receiptOf(rec, *report.Meta)
	r.SignTranscript(c.Threads.Records.Seal().Keys())
	r.IssuedAt = c.Threads.Now().UTC()
	if err := c.addTree(ctx, &r); err != nil {
		return nil, threads.Fault(err)
	}
	sealed, err := r.Seal(key)
	if err != nil {
		return nil, threads.Fault(err)
	}
	return sealed, nil
}

func receiptOf(rec thread.Record, meta thread.Meta) audit.Receipt {
	r := audit.Receipt{
		ThreadID: rec.ThreadID, Kind: meta.Kind, ParentID: meta.ParentID, ChainRootID: meta.ChainRootID,
		Directive: meta.Directive, DirectiveHash: meta.DirectiveHash, Space: meta.Space, Snapshot: meta.Snapshot, Model: meta.Model,
		Capabilities: meta.Capabilities, Ceiling: meta.Ceiling, Limits: meta.Limits, Status: rec.Status,
		CreatedAt: rec.CreatedAt, CompletedAt: rec.CompletedAt, Cost: rec.Cost, TreeSpend: rec.Cost.Spend, Transcript: meta.Transcript,
	}
	if o := rec.Outcome; o != nil && o.Error != nil {
		r.ErrorCode = o.Error.Code
	}
	return r
}

// unvouched refuses a receipt for a thread because one of its tree does not verify.
func unvouched(id, bad thread.ID) *tool.Fault {
	if bad == id {
		return tool.Faultf(tool.CodeInvalidItem, "thread %s does not verify, so there is no receipt for it", id).
			WithHint("rye-mcp threads verify %s", id)
	}
	return tool.Faultf(tool.CodeInvalidItem, "thread %s, which is below %s, does not verify, so there is no receipt for what both have cost", bad, id).
		WithHint("rye-mcp threads verify %s", bad)
}

// addTree adds what the threads below have cost. The ledger, which nobody signs, is
// believed of those alone that have not ended. Else it can only tell of a thread
// that the registry lost: it is read first, so that otherwise it never knows of more
// than the threads do, whatever they spend meanwhile.
func (c *Checker) addTree(ctx context.Context, r *audit.Receipt) error {
	_, known, err := c.Threads.Store.Tree(ctx, r.ThreadID)
	if err != nil && !errors.Is(err, store.ErrNoBudget) {
		return err
	}
	all, err := c.Threads.Store.Descendants(ctx, r.ThreadID)
	if err != nil {
		return err
	}
	for _, rec := range startedBelow(r.ThreadID, all) {
		if rec, err = c.vouched(ctx, rec.ThreadID, r.ThreadID); err != nil {
			return err
		}
		r.TreeSpend += rec.Cost.Spend
		r.Below = append(r.Below, audit.ReceiptThread{
			ThreadID: rec.ThreadID, ParentID: rec.ParentID, Directive: rec.Directive, Status: rec.Status, Cost: rec.Cost,
		})
	}
	if known.Actual > r.TreeSpend {
		return tool.Faultf(tool.CodeInvalidItem,
			"the ledger says that thread %s and those below it have spent %s, and those that are known have spent %s, so there is no receipt for it",
			r.ThreadID, known.Actual, r.TreeSpend).WithHint("rye-mcp doctor tells what was lost of this project")
	}
	return nil
}

// startedBelow are those of the threads that id has started, and those that they
// have, children before grandchildren. A thread that continues one of them without being
// started by one is not theirs.
func startedBelow(id thread.ID, all []thread.Record) []thread.Record {
	children := make(map[thread.ID][]thread.Record)
	for _, rec := range all {
		children[rec.ParentID] = append(children[rec.ParentID], rec)
	}
	below := slices.Clone(children[id])
	for i := 0; i < len(below); i++ {
		below = append(below, children[below[i].ThreadID]...)
	}
	return below
}

// vouched is the row of a thread below that of a receipt. One that has ended must
// verify; one that has not costs so far what registry and ledger say.
func (c *Checker) vouched(ctx context.Context, id, top thread.ID) (thread.Record, error) {
	rec, report, err := c.verify(ctx, id, false, true)
	switch {
	case err != nil:
		return rec, err
	case !rec.Status.Terminal():
		budget, err := c.Threads.Store.Budget(ctx, id)
		if errors.Is(err, store.ErrNoBudget) {
			return rec, nil
		}
		rec.Cost.Spend = max(rec.Cost.Spend, budget.Own)
		return rec, err
	case !report.Good():
		return rec, unvouched(top, id)
	}
	return rec, nil
}
