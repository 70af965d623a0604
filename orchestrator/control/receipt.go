package control

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ThreadReceipt returns a signed summary of a thread that has ended, which can be
// checked without the project: [audit.OpenReceipt]. A thread that does not verify
// gets none, whatever transcript_integrity says.
func (c *Controller) ThreadReceipt(ctx context.Context, id thread.ID) ([]byte, error) {
	if c.Key == nil {
		return nil, action.Fault(sign.ErrNoKey)
	}
	verdict, report, err := c.verify(ctx, id, false)
	if err != nil {
		return nil, fault(err)
	}
	rec, err := c.Store.Get(ctx, id)
	switch {
	case err != nil:
		return nil, fault(err)
	case !rec.Status.Terminal():
		return nil, tool.Faultf(tool.CodeUnsupported, "thread %s is %s; a receipt is for one that has ended", id, rec.Status)
	case !verdict.Verified || report.Meta == nil:
		return nil, tool.Faultf(tool.CodeInvalidItem, "thread %s does not verify, so there is no receipt for it", id).
			WithHint("rye-mcp threads verify %s", id)
	}
	r := receiptOf(rec, *report.Meta)
	r.IssuedAt = c.Now().UTC()
	if err := c.addTree(ctx, &r); err != nil {
		return nil, fault(err)
	}
	sealed, err := r.Seal(c.Key)
	if err != nil {
		return nil, fault(err)
	}
	return sealed, nil
}

func receiptOf(rec thread.Record, meta thread.Meta) audit.Receipt {
	r := audit.Receipt{
		ThreadID: rec.ThreadID, Kind: meta.Kind, ParentID: meta.ParentID, ChainRootID: meta.ChainRootID,
		Directive: meta.Directive, DirectiveHash: meta.DirectiveHash, Space: meta.Space, Model: meta.Model,
		Capabilities: meta.Capabilities, Ceiling: meta.Ceiling, Limits: meta.Limits, Status: rec.Status,
		CreatedAt: rec.CreatedAt, CompletedAt: rec.CompletedAt, Cost: rec.Cost, TreeSpend: rec.Cost.Spend, Transcript: meta.Transcript,
	}
	if o := rec.Outcome; o != nil && o.Error != nil {
		r.ErrorCode = o.Error.Code
	}
	return r
}

// addTree adds what the threads below have cost.
func (c *Controller) addTree(ctx context.Context, r *audit.Receipt) error {
	below, err := c.Store.Descendants(ctx, r.ThreadID)
	if err != nil {
		return err
	}
	counted := map[thread.ID]bool{r.ThreadID: true}
	for _, rec := range below {
		if !counted[rec.ParentID] {
			continue // it carries on one of them, and is not theirs
		}
		counted[rec.ThreadID] = true
		r.Below = append(r.Below, audit.ReceiptThread{
			ThreadID: rec.ThreadID, ParentID: rec.ParentID, Directive: rec.Directive, Status: rec.Status, Cost: rec.Cost,
		})
	}
	_, tree, err := c.Store.Tree(ctx, r.ThreadID)
	if errors.Is(err, store.ErrNoBudget) {
		return nil
	}
	r.TreeSpend = tree.Actual
	return err
}
