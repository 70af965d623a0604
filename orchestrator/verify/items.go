package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// withItems adds to a verdict what is wrong with the snapshot of the items that the thread
// works by. Each snapshot is read once. That of an imported thread stayed where it ran. The
// error says that it could not be read, which says nothing of what it is.
func (c *Checker) withItems(ctx context.Context, v *Verification, verdict Verdict, r *audit.Report) (Verdict, error) {
	all := c.Threads.Snapshots
	if all == nil || r.Meta == nil || r.Meta.Snapshot == "" || r.Meta.Imported != nil {
		return verdict, nil
	}
	name := r.Meta.Snapshot
	wrong, known := v.snapshots[name]
	if !known {
		wrong = all.Verify(ctx, snapshot.Hash(name))
		if wrong != nil && !errors.Is(wrong, snapshot.ErrUnusable) {
			return verdict, fmt.Errorf("check the snapshot of the items of %s: %w", r.Meta.ThreadID, wrong)
		}
		if v.snapshots == nil {
			v.snapshots = map[string]error{}
		}
		v.snapshots[name] = wrong
	}
	if wrong != nil {
		verdict.Verified = false
		verdict.Findings = append(verdict.Findings, audit.Finding{File: "snapshot " + name, Damage: transcript.Altered, Detail: wrong.Error()})
	}
	return verdict, nil
}
