package continuation

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// continued is the thread.json of a thread that continues another, made of that of
// the thread before. The caller sets the limits.
func continued(before thread.Meta, rec thread.Record, how thread.Continuation) thread.Meta {
	m := before
	m.ThreadID, m.ParentID, m.Status, m.Model = rec.ThreadID, rec.ParentID, rec.Status, rec.Model
	m.CreatedAt, m.UpdatedAt = rec.CreatedAt, rec.UpdatedAt
	m.Inputs = OwnInputs(before.Inputs)
	m.Inputs[handoff.InputPreviousThread] = string(before.ThreadID)
	if how.SummaryID != "" {
		m.Inputs[handoff.InputPreviousSummary] = how.SummaryID
	}
	m.ContinuationOf, m.ChainRootID, m.Continuation = rec.ContinuationOf, rec.ChainRootID, &how
	m.BeginsWith = ""                                                             // it is in the conversation
	m.ForkedFrom = nil                                                            // the thread before was the copy
	m.Cost, m.Outcome, m.Transcript, m.SettingsHash = thread.Cost{}, nil, nil, "" // the launcher reads its own
	return m
}

// wholeOf are the limits of a chain, of which a thread that continues another has the rest.
func wholeOf(before thread.Meta, rest thread.Limits, by string) *thread.Limits {
	whole := before.Limits
	if c := before.Continuation; c != nil && c.Whole != nil {
		whole = *c.Whole
	}
	if by == config.LimitsFresh {
		whole.Turns, whole.Tokens, whole.DurationSeconds = rest.Turns, rest.Tokens, rest.DurationSeconds
	}
	return &whole
}

// OwnInputs are the inputs that the first thread of a chain was started with.
func OwnInputs(given map[string]any) map[string]any {
	own := make(map[string]any, len(given)+2)
	maps.Copy(own, given)
	delete(own, handoff.InputPreviousThread)
	delete(own, handoff.InputPreviousSummary)
	return own
}

// childrenOf are the threads that a thread, or those that it continues, has started and of
// whose end it was not told, nor is the one that continues it by what it begins with.
func (c *Continuer) childrenOf(before thread.Record, meta thread.Meta, told []handoff.Child) ([]thread.ID, error) {
	var given []thread.ID
	if meta.Continuation != nil {
		given = meta.Continuation.Children
	}
	if before.SpawnCount == 0 && len(given) == 0 {
		return nil, nil
	}
	children, err := transcript.Children(c.Threads.Transcript(before.ThreadID), given)
	return slices.DeleteFunc(children, func(id thread.ID) bool {
		return slices.ContainsFunc(told, func(c handoff.Child) bool { return c.ThreadID == id && c.Status.Terminal() })
	}), err
}

// seed writes down what a thread begins with that goes on with the conversation of
// another: the artifacts of that one, the messages, and what was counted of them.
func (c *Continuer) seed(rec, before thread.Record, via thread.Via, messages []llm.Message, counted transcript.Count) error {
	if err := c.Threads.Records.Of(before.ThreadID).Artifacts().ShareWith(rec.ThreadID); err != nil {
		return err
	}
	w, err := c.Threads.Finisher.OpenTranscript(rec.ThreadID, rec.Run)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	continued := transcript.ThreadContinued{PreviousThreadID: before.ThreadID, Via: via}
	if counted.Tokens > 0 {
		continued.Counted = &counted
	}
	return w.Seed(continued, messages)
}

// manifest says how the work of a chain stands, whose last thread has this
// thread.json. Threads of the summary directive are no part of the work. The
// caller adds the task.
func (c *Call) manifest(
	ctx context.Context, chain []thread.Record, meta thread.Meta, via thread.Via, summaryDirective string,
) (handoff.Manifest, error) {
	last := chain[len(chain)-1]
	m := handoff.Manifest{
		Thread: last.ThreadID, Via: via, Position: len(chain) + 1, Directive: last.Directive, Inputs: OwnInputs(meta.Inputs),
	}
	if last.Outcome != nil {
		m.Outputs = last.Outcome.Outputs
	}
	genuine, err := c.Genuine(ctx, chain)
	if err != nil {
		return m, err
	}
	facts, err := handoff.FactsOf(genuine...)
	if err != nil {
		return m, err
	}
	m.Files, m.Said = facts.Files, facts.Said
	artifacts, err := c.Threads.Records.Of(last.ThreadID).Artifacts().List()
	if err != nil {
		return m, err
	}
	for _, kept := range artifacts {
		if !strings.HasSuffix(kept.Name, thread.BundleSuffix) {
			m.Artifacts = append(m.Artifacts, facts.Artifact(kept.Name, kept.Size))
		}
	}
	m.Children, err = c.StartedBy(ctx, chain)
	m.Children = slices.DeleteFunc(m.Children, func(child handoff.Child) bool { return child.Directive == summaryDirective })
	return m, err
}

// Genuine are the transcripts of a chain whose last thread has been verified. One
// that does not verify tells a successor nothing: its words would be signed
// anew as a fact.
func (c *Call) Genuine(ctx context.Context, chain []thread.Record) ([]records.Source, error) {
	var genuine []records.Source
	for i, link := range chain {
		if i < len(chain)-1 {
			verdict, _, err := c.Verify.AsSet(ctx, c.Call, link.ThreadID)
			if err != nil {
				return nil, err
			}
			if !verdict.Verified {
				c.Threads.Log.Warn().Str("thread_id", string(link.ThreadID)).Msg("nothing is told of a thread of the chain that does not verify")
				continue
			}
		}
		genuine = append(genuine, c.Threads.Transcript(link.ThreadID))
	}
	return genuine, nil
}

// StartedBy tells what the threads of a chain have started, and what has become of
// it, oldest first.
func (c *Continuer) StartedBy(ctx context.Context, chain []thread.Record) ([]handoff.Child, error) {
	below, err := c.Threads.Store.Descendants(ctx, chain[0].ThreadID)
	if err != nil {
		return nil, err
	}
	below = slices.DeleteFunc(below, func(rec thread.Record) bool { return !threads.InChain(chain, rec.ParentID) })
	// One that continues another of them is told of there; one that was resumed from
	// further below is a child as any other.
	started := slices.Clone(below)
	below = slices.DeleteFunc(below, func(rec thread.Record) bool { return threads.InChain(started, rec.ContinuationOf) })
	slices.SortStableFunc(below, func(a, b thread.Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
	var children []handoff.Child
	for _, rec := range below {
		now, err := lineage.Resolve(rec.ThreadID, c.Threads.Getter(ctx))
		if err != nil {
			return nil, err
		}
		children = append(children, handoff.Child{
			ThreadID: rec.ThreadID, Directive: rec.Directive, Status: now.Status, Result: cameOut(now.Outcome),
		})
	}
	return children, nil
}

// cameOut is what came out of a thread, or why nothing did; empty while it works.
func cameOut(o *thread.Outcome) string {
	switch {
	case o == nil:
		return ""
	case o.Error != nil:
		return o.Error.Message
	case len(o.Outputs) > 0:
		if outputs, err := json.Marshal(o.Outputs); err == nil {
			return string(outputs)
		}
	}
	return cmp.Or(o.Result, string(o.Data))
}
