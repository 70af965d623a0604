package control

import (
	"errors"
	"os"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// converse lets the thread say something and be answered, as one that has been
// prepared.
func (p *puppet) converse(text string) error {
	capabilities, err := p.c.Threads.Records.Seal().Attach([]byte("# Capabilities of "+p.id+"\n"), ".md", records.CapabilitiesName(p.id), testTime)
	if err != nil {
		return err
	}
	p.turn++
	return errors.Join(
		p.folder(p.id).WriteCapabilities(capabilities),
		p.words.Append(thread.EventCognitionIn, transcript.CognitionIn{
			Role: llm.User, Blocks: transcript.Blocks(llm.Text(llm.User, text).Blocks),
		}),
		p.words.Append(thread.EventCognitionOut, transcript.CognitionOut{
			Turn: p.turn, Blocks: transcript.Blocks(llm.Text(llm.Assistant, "answer to "+text).Blocks), StopReason: llm.StopEnd,
		}),
		p.words.Checkpoint(p.turn),
	)
}

// counted is an exchange of which the provider of the thread's model counts so many
// tokens.
func (p *puppet) counted(tokens int64) error {
	rec, err := p.c.Threads.Store.Get(p.ctx, p.id)
	if err != nil {
		return err
	}
	p.turn++
	return errors.Join(
		p.words.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks(llm.Text(llm.User, "count").Blocks)}),
		p.words.Append(thread.EventCognitionRequest, transcript.CognitionRequest{Turn: p.turn, Model: rec.Model}),
		p.words.Append(thread.EventCognitionOut, transcript.CognitionOut{
			Turn: p.turn, Blocks: transcript.Blocks(llm.Text(llm.Assistant, "counted").Blocks), StopReason: llm.StopEnd,
			Usage: llm.Usage{InputTokens: tokens, Reported: true},
		}),
		p.words.Checkpoint(p.turn),
	)
}

// call is a turn in which the model calls a tool that has not answered yet.
func (p *puppet) call(tool string) error {
	p.turn++
	return errors.Join(
		p.words.Append(thread.EventCognitionOut, transcript.CognitionOut{
			Turn: p.turn, Blocks: transcript.Blocks{{Type: llm.ToolUseBlock, ToolCallID: "c1", ToolName: tool}}, StopReason: llm.StopToolUse,
		}),
		p.words.Checkpoint(p.turn),
	)
}

// hear puts the oldest unread message into the transcript, as the loop does before it
// tells the registry.
func (p *puppet) hear() error {
	unread, err := p.c.Threads.Store.Unread(p.ctx, p.id)
	if err != nil {
		return err
	}
	m := unread[0]
	return p.words.Append(thread.EventMessage, transcript.Message{
		MessageID: m.ID, Kind: m.Kind, From: m.From, Blocks: transcript.Blocks(llm.Text(llm.User, m.Text).Blocks),
	})
}

// mutter is what a crash would leave unsigned.
func (p *puppet) mutter(text string) error {
	return p.words.Append(thread.EventCognitionOut, transcript.CognitionOut{
		Turn: p.turn + 1, Blocks: transcript.Blocks(llm.Text(llm.Assistant, text).Blocks), StopReason: llm.StopEnd,
	})
}

// makeSuccessor begins as the loop does, with everything signed.
func (p *puppet) makeSuccessor() (handoff.Successor, error) {
	err := errors.Join(
		p.words.Append(thread.EventHookFired, transcript.HookFired{HookID: "test", Event: "before_handoff"}), p.words.Checkpoint(0))
	if err != nil {
		return nil, err
	}
	return p.c.Continue.MakeSuccessor(p.ctx, handoff.Request{
		ThreadID: p.id, Ceiling: 2000, Task: "Work.", Used: handoff.Used{Turns: 1, Tokens: 100, Seconds: 2},
	})
}

// handOver ends the thread as the loop does when its window is full, and this
// process.
func (p *puppet) handOver() error {
	p.c.Threads.Finisher.Crashpoints = dieAtPoint
	if p.made == nil {
		var err error
		if p.made, err = p.makeSuccessor(); err != nil {
			return err
		}
	}
	rec, err := p.c.Threads.Store.Get(p.ctx, p.id)
	if err != nil {
		return err
	}
	next := p.made.Handoff()
	_, err = p.c.Threads.Finisher.Finish(p.ctx, p.runner(), p.words, thread.Outcome{State: thread.Continued, Handoff: &next}, rec.Cost)
	if err != nil {
		return err
	}
	if err := errors.Join(p.made.Start(p.ctx), p.hold.Release()); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}
