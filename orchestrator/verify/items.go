package verify

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// withItems adds to a verdict what is wrong with the snapshot of the items that the thread
// works by. Each snapshot is read once. That of an imported thread stayed where it ran.
func (c *Checker) withItems(ctx context.Context, v *Verification, verdict Verdict, r *audit.Report) Verdict {
	all := c.Threads.Snapshots
	if all == nil || r.Meta == nil || r.Meta.Snapshot == "" || r.Meta.Imported != nil {
		return verdict
	}
	name := r.Meta.Snapshot
	wrong, known := v.snapshots[name]
	if !known {
		wrong = all.Verify(ctx, snapshot.Hash(name))
		if v.snapshots == nil {
			v.snapshots = map[string]error{}
		}
		v.snapshots[name] = wrong
	}
	if wrong != nil {
		verdict.Verified = false
		verdict.Findings = append(verdict.Findings, audit.Finding{File: "snapshot " + name, Damage: transcript.Altered, Detail: wrong.Error()})
	}
	return verdict
}
