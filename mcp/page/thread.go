package page

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/rye-mcp/rye-mcp/orchestrator/changeset"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ThreadAnswer is what a page shows of one thread.
type ThreadAnswer struct {
	Status    view.Status     `json:"status"`
	Chain     view.Chain      `json:"chain"`
	Question  *view.Waiting   `json:"question,omitempty"`
	Directive DirectiveUsed   `json:"directive"`
	Thread    json.RawMessage `json:"thread,omitempty"` // thread.json; left out when it cannot be trusted
	Damaged   string          `json:"damaged,omitempty"`
	// Receipt says that one can be had.
	Receipt bool `json:"receipt"`
}

// DirectiveUsed is the directive of a thread, with its text where that is still the one
// that the thread was started with.
type DirectiveUsed struct {
	ID      string `json:"id"`
	Hash    string `json:"hash,omitempty"`
	Text    string `json:"text,omitempty"`
	Changed bool   `json:"changed,omitempty"` // since the thread was started
}

// asked opens the project of a call, and finds the very thread that it names.
func (p *Page) asked(ctx context.Context, c *call) (*Project, thread.Record, error) {
	id, err := parseID(c.r.PathValue("id"))
	if err != nil {
		return nil, thread.Record{}, err
	}
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, thread.Record{}, err
	}
	rec, err := find(ctx, project, id)
	return project, rec, err
}

// parseID is the id of a thread in a request.
func parseID(text string) (thread.ID, error) {
	id, err := thread.ParseID(text)
	if err != nil {
		return "", tool.Faultf(tool.CodeBadID, "%s is not the id of a thread", strconv.Quote(clip(text)))
	}
	return id, nil
}

// find finds the very thread of an id, settled when its process is gone.
func find(ctx context.Context, project *Project, id thread.ID) (thread.Record, error) {
	rec, err := project.Control.Threads.Examine(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		err = project.Control.Threads.NoThread(ctx, id)
	}
	if err != nil {
		return rec, threads.Fault(err)
	}
	return rec, nil
}

// thread answers with all about a thread but what it did.
func (p *Page) thread(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	control := project.Control
	answer := ThreadAnswer{Receipt: rec.Status.Terminal(), Directive: DirectiveUsed{ID: rec.Directive}}
	if answer.Status, err = control.View.Status(ctx, rec.ThreadID); err != nil {
		return nil, err
	}
	if answer.Chain, err = control.View.GetChain(ctx, rec.ThreadID); err != nil {
		return nil, err
	}
	for _, asks := range answer.Status.Waiting {
		if asks.ThreadID == rec.ThreadID || asks.ThreadID == answer.Status.ResolvedThreadID {
			if question, err := control.View.Question(ctx, asks.ThreadID); err == nil { // with the whole summary
				answer.Question = &question
			}
		}
	}
	meta, err := control.Threads.OwnMeta(rec.ThreadID)
	if err != nil {
		answer.Damaged = err.Error()
		return answer, nil //nolint:nilerr // it is in the answer
	}
	answer.Directive = used(project, rec, meta)
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	answer.Thread, _ = shorten(raw)
	return answer, nil
}

// used is the directive that a thread was started with.
func used(project *Project, rec thread.Record, meta thread.Meta) DirectiveUsed {
	d := DirectiveUsed{ID: rec.Directive, Hash: meta.DirectiveHash}
	if rec.Kind != thread.KindDirective {
		return d
	}
	found, err := project.Actions.Resolver.Find(item.Directive, rec.Directive)
	if err != nil || found.Hash != meta.DirectiveHash {
		d.Changed = true
		return d
	}
	d.Text = string(found.Content)
	return d
}

// timeline answers with what a thread did when; of those below it, too, as a tree.
func (p *Page) timeline(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.flag("tree") {
		return project.Control.View.Timelines(ctx, rec.ThreadID)
	}
	return project.Control.View.Timeline(ctx, rec.ThreadID)
}

// spend answers with what a thread has spent by when.
func (p *Page) spend(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	return project.Control.View.Spend(ctx, rec.ThreadID)
}

// diffRoom is how many bytes of a diff are shown at once.
const diffRoom = 4 << 20

// diff answers with what a thread has changed in its workspace.
func (p *Page) diff(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	offset, err := c.number("offset")
	if err != nil {
		return nil, err
	}
	return project.Control.Changed.Diff(ctx, changeset.Request{ThreadID: rec.ThreadID, Path: c.query("path"), Offset: int(offset), Room: diffRoom})
}

// verify answers with what the files of a thread are worth.
func (p *Page) verify(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	return project.Control.Verify.Check(ctx, []thread.ID{rec.ThreadID})
}

// receipt answers with the signed receipt of a thread, as it is to be kept.
func (p *Page) receipt(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	sealed, err := project.Control.Verify.Receipt(ctx, rec.ThreadID)
	if err != nil {
		return nil, err
	}
	download(c, fileName(rec.ThreadID, ".receipt.json"), "application/json", append(sealed, '\n'))
	return nil, nil //nolint:nilnil // all of it was said
}
