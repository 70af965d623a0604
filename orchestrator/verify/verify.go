// Package verify holds what threads left on disk against its signatures and the
// registry, and makes receipts of those that verify.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Verification is the answer to a verification of threads.
type Verification struct {
	Success bool      `json:"success" jsonschema:"true when every thread verifies"`
	Mode    string    `json:"transcript_integrity"`
	Signer  string    `json:"signer,omitempty" jsonschema:"fingerprint of the state key, which signs what threads leave"`
	Threads []Verdict `json:"threads"`

	snapshots map[string]error // that were checked, and what is wrong with them
}

// Verdict is what the verification of one thread came to.
type Verdict struct {
	ThreadID     thread.ID       `json:"thread_id"`
	Status       thread.State    `json:"status"`
	Verified     bool            `json:"verified"`
	FirstBadTurn int             `json:"first_bad_turn,omitempty" jsonschema:"first turn of the transcript that cannot be trusted"`
	Findings     []audit.Finding `json:"findings,omitempty"`
	Warnings     []string        `json:"warnings,omitempty"`
	Transcript   Covered         `json:"transcript"`
}

// Covered is how much of a transcript is vouched for.
type Covered struct {
	Turns         int   `json:"turns"`
	Checkpoints   int   `json:"checkpoints"`
	Bytes         int64 `json:"bytes"`
	SignedBytes   int64 `json:"signed_bytes"`
	UnsignedBytes int64 `json:"unsigned_bytes" jsonschema:"complete lines after the last checkpoint"`
	TornBytes     int64 `json:"torn_bytes" jsonschema:"after the last complete line"`
}

// Checker verifies the threads of a project.
type Checker struct {
	Threads  *threads.Threads
	Settings *settings.Source
	// Key reads the user's item key, which signs receipts; it may be made while a
	// server runs.
	Key func() (*sign.Key, error)
}

// Check holds what threads left on disk against its signatures and the
// registry. Damage is in the answer; the error says that a check could not be
// made.
func (c *Checker) Check(ctx context.Context, ids []thread.ID) (Verification, error) {
	v, err := c.newVerification()
	if err != nil {
		return v, threads.Fault(err)
	}
	for _, id := range ids {
		if err := c.judge(ctx, &v, id); err != nil {
			return v, threads.Fault(err)
		}
	}
	return v, nil
}

// CheckAll is Check for every thread of the project, newest first. Progress is
// told how many have been checked.
func (c *Checker) CheckAll(ctx context.Context, progress func(done int)) (Verification, error) {
	v, err := c.newVerification()
	if err != nil {
		return v, threads.Fault(err)
	}
	err = store.EachRow(ctx, c.Threads.Store, nil, func(rec thread.Record) error {
		err := c.judge(ctx, &v, rec.ThreadID)
		if err == nil {
			progress(len(v.Threads))
		}
		return errors.Join(err, context.Cause(ctx))
	})
	if err != nil {
		return v, threads.Fault(err)
	}
	return v, nil
}

// judge adds the verdict on one thread.
func (c *Checker) judge(ctx context.Context, v *Verification, id thread.ID) error {
	rec, report, err := c.verify(ctx, id, v.lenient(), true)
	if err != nil {
		return err
	}
	verdict, err := c.withItems(ctx, v, verdictOf(rec, report), report)
	if err != nil {
		return err
	}
	v.add(verdict)
	return nil
}

func (c *Checker) newVerification() (Verification, error) {
	set, _, err := c.Settings.Begin().Config.Coordination()
	if err != nil {
		return Verification{}, err
	}
	v := Verification{Success: true, Mode: set.TranscriptIntegrity, Threads: []Verdict{}}
	if seal := c.Threads.Records.Seal(); seal != nil {
		v.Signer = seal.Fingerprint()
	}
	return v, nil
}

func (v *Verification) lenient() bool { return v.Mode == config.TranscriptLenient }

func (v *Verification) add(verdict Verdict) {
	v.Threads = append(v.Threads, verdict)
	v.Success = v.Success && verdict.Verified
}

// verify checks one thread, and returns the row that its files were held against.
// The row is read first, and again after damage was found: a thread that has gone
// on meanwhile is checked once more. Entry says that its knowledge entry is checked, too.
func (c *Checker) verify(ctx context.Context, id thread.ID, lenient, entry bool) (thread.Record, *audit.Report, error) {
	rec, err := c.Threads.Settled(ctx, id)
	for {
		if err != nil {
			return rec, nil, err
		}
		report, err := c.audit(ctx, rec, lenient, entry)
		if err != nil {
			if _, gone := c.Threads.Store.Get(ctx, id); thread.WasDeleted(gone, id) {
				return rec, nil, gone // and its files with it
			}
			return rec, nil, fmt.Errorf("verify %s: %w", id, err)
		}
		if report.Good() {
			return rec, report, nil
		}
		if isEnding(rec, report) {
			if _, err := c.Threads.AwaitRelease(ctx, id); err != nil {
				return rec, nil, err
			}
		}
		now, err := c.Threads.Settled(ctx, id)
		if err != nil {
			return rec, nil, err
		}
		if now.Status == rec.Status && now.Cost == rec.Cost {
			return rec, report, nil
		}
		rec = now
	}
}

// isEnding reports whether a thread has signed its end and its row does not say so yet:
// the row is the last that is written.
func isEnding(rec thread.Record, r *audit.Report) bool {
	return !rec.Status.Terminal() && r.Meta != nil && r.Meta.Status.Terminal()
}

// AsSet verifies a thread that is to be continued, as strictly as the settings say. Its
// knowledge entry is not looked at: no thread continues by that, and where several machines
// have the threads the one that it ran on may have an older entry.
func (c *Checker) AsSet(ctx context.Context, now *settings.Call, id thread.ID) (Verdict, *audit.Report, error) {
	set, _, err := now.Config.Coordination()
	if err != nil {
		return Verdict{}, nil, err
	}
	rec, report, err := c.verify(ctx, id, set.TranscriptIntegrity == config.TranscriptLenient, false)
	if err != nil {
		return Verdict{}, nil, err
	}
	return verdictOf(rec, report), report, nil
}

// audit checks a thread once, against this row of it.
func (c *Checker) audit(ctx context.Context, rec thread.Record, lenient, entry bool) (*audit.Report, error) {
	subject := audit.Subject{
		Row: rec, Records: c.Threads.Records, Lenient: lenient,
	}
	if entry {
		subject.Rendering, subject.RenderingID = finish.Rendering(finish.KnowledgeDir(c.Threads.Project), rec), finish.RenderingID(rec)
	}
	budget, err := c.Threads.Store.Budget(ctx, rec.ThreadID)
	switch {
	case err == nil:
		subject.LedgerSpend = &budget.Own
	case !errors.Is(err, store.ErrNoBudget):
		return nil, err
	}
	return audit.Thread(subject)
}

func verdictOf(rec thread.Record, r *audit.Report) Verdict {
	t := r.Transcript
	v := Verdict{
		ThreadID: rec.ThreadID, Status: rec.Status, Verified: r.Good(), Findings: r.Findings, Warnings: r.Warnings,
		Transcript: Covered{
			Turns: t.Turns, Checkpoints: t.Checkpoints, Bytes: t.Bytes, SignedBytes: t.SignedBytes, TornBytes: t.TornBytes,
			UnsignedBytes: t.UnsignedBytes(),
		},
	}
	for _, f := range r.Findings {
		if f.Turn > 0 && (v.FirstBadTurn == 0 || f.Turn < v.FirstBadTurn) {
			v.FirstBadTurn = f.Turn
		}
	}
	return v
}
