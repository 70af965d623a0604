package steer

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ToParent is the reader of a note to the thread that has started its sender.
const ToParent = "parent"

// NoteRequest is a note of one thread to another.
type NoteRequest struct {
	From thread.ID // empty: the thread that this process runs in
	To   string    // ToParent, or the id of a thread below the same root
	Text string
}

// Note writes a note to the parent of a thread, or to another below the same root. It is
// data to who reads it. A sender is bounded in each of its turns.
func (s *Steerer) Note(ctx context.Context, req NoteRequest) (Steered, error) {
	if req.From == "" {
		req.From = s.Threads.Parent
	}
	if req.From == "" {
		return Steered{}, tool.Faultf(tool.CodeUnsupported, "notes are written by threads").WithHint("steer_thread tells a thread something")
	}
	text, err := plainText(req.Text)
	if err != nil {
		return Steered{}, err
	}
	set, _, err := s.Settings.Begin().Config.Coordination()
	if err != nil {
		return Steered{}, threads.Fault(err)
	}
	if set.Notes.PerTurn == 0 {
		return Steered{}, tool.Faultf(tool.CodeUnsupported, "notes between threads are turned off").
			WithHint("say it in what you return").WithTry("notes.per_turn of coordination in your settings")
	}
	sender, reader, err := s.correspondents(ctx, req)
	if err != nil {
		return Steered{}, err
	}
	kind, err := s.relation(ctx, sender, reader)
	if err != nil {
		return Steered{}, threads.Fault(err)
	}
	m := thread.Message{Kind: thread.Note, From: thread.Sender{Kind: kind, Name: string(sender.ThreadID)}, Text: text}
	return s.post(ctx, reader.ThreadID, reader, m, store.NoteBound{Notes: set.Notes.PerTurn, Bytes: set.Notes.BytesPerTurn})
}

// correspondents are the rows of who writes and who reads, which must work below the same
// root.
func (s *Steerer) correspondents(ctx context.Context, req NoteRequest) (sender, reader thread.Record, err error) {
	if sender, err = s.Threads.Store.Get(ctx, req.From); err != nil {
		return sender, reader, threads.Fault(err)
	}
	to := thread.ID(req.To)
	if req.To == ToParent {
		if to = sender.ParentID; to == "" {
			return sender, reader, tool.Faultf(tool.CodeUnsupported, "thread %s has no parent: a person or a client has started it", sender.ThreadID).
				WithHint("say it in what you return")
		}
	}
	if reader, err = s.Threads.LookAsked(ctx, to); err != nil {
		return sender, reader, threads.Fault(err)
	}
	if reader.ThreadID == sender.ThreadID {
		return sender, reader, tool.Faultf(tool.CodeBadArguments, "thread %s would write to itself", sender.ThreadID).
			WithHint("give to: parent, or the id of another thread")
	}
	ours, err := s.root(ctx, sender)
	if err != nil {
		return sender, reader, threads.Fault(err)
	}
	if theirs, err := s.root(ctx, reader); err != nil || theirs != ours {
		return sender, reader, errors.Join(err, tool.Faultf(tool.CodePermissionDenied,
			"thread %s does not work below the same root as %s, so it gets no notes from there", reader.ThreadID, sender.ThreadID).
			WithHint("give to: parent, or the id of a thread below %s", ours))
	}
	return sender, reader, nil
}

// root is the first thread of the chain at the top of a tree.
func (s *Steerer) root(ctx context.Context, rec thread.Record) (thread.ID, error) {
	seen := map[thread.ID]bool{}
	for rec.ParentID != "" && !seen[rec.ThreadID] {
		seen[rec.ThreadID] = true
		above, err := s.Threads.Store.Get(ctx, rec.ParentID)
		if err != nil {
			return "", err
		}
		rec = above
	}
	if rec.ChainRootID != "" {
		return rec.ChainRootID, nil
	}
	return rec.ThreadID, nil
}

// relation is what the sender of a note is to its reader.
func (s *Steerer) relation(ctx context.Context, sender, reader thread.Record) (thread.SenderKind, error) {
	get := s.Threads.Getter(ctx)
	if below, err := lineage.IsBelow(sender.ThreadID, reader.ThreadID, get); err != nil || below {
		return thread.ByChild, err
	}
	if below, err := lineage.IsBelow(reader.ThreadID, sender.ThreadID, get); err != nil || below {
		return thread.ByParent, err
	}
	return thread.BySibling, nil
}
