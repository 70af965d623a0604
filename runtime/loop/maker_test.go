package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// maker stands for the orchestrator: it registers successors and moves the budget,
// and starts no process.
type maker struct {
	h        *house
	fails    func(id thread.ID) error // before anything is made; nil: it does not
	requests []handoff.Request
	turns    int  // on record when it was last called
	hurried  bool // it could have been interrupted
	next     thread.ID
	started  int
	givenUp  []error
}

// handsOver lets the threads of the house hand over.
func handsOver(h *house) *maker {
	h.maker = &maker{h: h}
	return h.maker
}

// MakeSuccessor implements [handoff.Maker].
func (m *maker) MakeSuccessor(ctx context.Context, r handoff.Request) (handoff.Successor, error) {
	m.requests = append(m.requests, r)
	m.hurried = m.hurried || ctx.Done() != nil
	report, err := transcript.Verify(records.File(m.h.folder(r.ThreadID).Transcript()), m.h.key, nil)
	m.turns = report.LastTurn
	if err == nil && report.SignedBytes != report.Bytes {
		return nil, fmt.Errorf("%d bytes are not signed", report.Bytes-report.SignedBytes)
	}
	if err == nil && m.fails != nil {
		err = m.fails(r.ThreadID)
	}
	if err != nil {
		return nil, err
	}
	old, err := m.h.store.Get(ctx, r.ThreadID)
	if err != nil {
		return nil, err
	}
	n := store.NewThread{Kind: thread.KindDirective, Directive: old.Directive, ContinuationOf: old.ThreadID, Handoff: true, Now: time.Now()}
	rec, _, err := store.Register(ctx, m.h.store, n, func(id thread.ID) error { return folder.Of(m.h.home().Dir, id).Make() })
	if err != nil {
		return nil, err
	}
	m.next = rec.ThreadID
	_, err = storetest.As(m.h.store).HandOver(ctx, old.ThreadID, rec.ThreadID, time.Now())
	return successor{m}, err
}

type successor struct{ *maker }

func (s successor) Handoff() thread.Handoff {
	return thread.Handoff{NewThreadID: s.next, TrailingTurns: 2}
}

func (s successor) Start(context.Context) error {
	s.started++
	return nil
}

func (s successor) GiveUp(_ context.Context, cause error) { s.givenUp = append(s.givenUp, cause) }

// continues makes the thread of a job continue another one, with a conversation
// that is seeded as the orchestrator does it.
func (h *house) continues(id thread.ID, c thread.Continuation, seeded ...llm.Message) {
	h.t.Helper()
	h.continuesCounted(id, c, 0, seeded...)
}

// continuesCounted is continues with a conversation of which fake/small has counted so many
// tokens; 0: nothing.
func (h *house) continuesCounted(id thread.ID, c thread.Continuation, tokens int64, seeded ...llm.Message) {
	h.t.Helper()
	meta, err := h.folder(id).ReadMeta(h.seal())
	if err != nil {
		h.t.Fatal(err)
	}
	const before = "test/task-1"
	w, err := h.finisher.OpenTranscript(id, "")
	if err != nil {
		h.t.Fatal(err)
	}
	continued := transcript.ThreadContinued{PreviousThreadID: before, Via: cmp.Or(c.Via, thread.ViaHandoff)}
	if tokens > 0 {
		continued.Counted = &transcript.Count{Tokens: tokens, Messages: len(seeded), Model: "fake/small"}
	}
	if err := w.Seed(continued, seeded); err != nil {
		h.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		h.t.Fatal(err)
	}
	c.Via, c.Position, c.Messages = cmp.Or(c.Via, thread.ViaHandoff), cmp.Or(c.Position, 2), len(seeded)
	meta.ContinuationOf, meta.Continuation = before, &c
	meta.Inputs["previous_thread_id"] = before
	if err := h.folder(id).WriteMeta(meta, h.seal()); err != nil {
		h.t.Fatal(err)
	}
}
