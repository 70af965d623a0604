package replay

import (
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/recorded"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// The types of failures that are answers, as the loop records them.
const (
	typeRefusal = "refusal"
	typeEmpty   = "empty_answer"
	typeFailed  = "failed_answer"
)

// callsOf are the calls of the model that a transcript has, failed ones too.
func callsOf(t *recording.Thread) ([]recorded.Call, error) {
	var c callReader
	for e, err := range t.Events() {
		if err == nil {
			err = c.add(e)
		}
		if err != nil {
			return nil, fmt.Errorf("recorded answers of %s: %w", t.ThreadID, err)
		}
	}
	return c.calls, nil
}

type callReader struct {
	calls []recorded.Call
	// reply is set while the last call is an answer that was taken for a failure: when it
	// stood all the same, it comes again as an answer.
	reply bool
}

func (c *callReader) add(e thread.Event) error {
	switch e.Type {
	case thread.EventCognitionRequest:
		c.reply = false
	case thread.EventErrorClassified:
		p, err := transcript.Decode[transcript.ErrorClassified](e)
		if err != nil || p.Turn == 0 { // not of a call
			return err
		}
		c.fail(e, p)
	case thread.EventCognitionOut:
		p, err := transcript.Decode[transcript.CognitionOut](e)
		if err != nil {
			return err
		}
		if c.reply {
			c.calls, c.reply = c.calls[:len(c.calls)-1], false
		}
		c.calls = append(c.calls, recorded.Call{Turn: p.Turn, At: e.Timestamp, Answer: llm.Response{
			Model: p.Model, Blocks: p.Blocks, StopReason: p.StopReason, StopWord: p.StopWord, Usage: p.Usage,
		}})
	}
	return nil
}

// fail takes a failure.
func (c *callReader) fail(e thread.Event, p transcript.ErrorClassified) {
	call := recorded.Call{Turn: p.Turn, At: e.Timestamp}
	switch p.Type {
	case typeRefusal:
		call.Answer.StopReason, call.Answer.StopWord, c.reply = llm.StopRefusal, p.Code, true
	case typeEmpty:
		call.Answer.StopReason, call.Answer.StopWord, c.reply = llm.StopEnd, p.Code, true
	case typeFailed:
		call.Answer.StopReason, call.Answer.StopWord = llm.StopFailed, p.Code
	default:
		call.Failure = &llm.APIError{Status: p.Status, Type: p.Type, Code: p.Code, MidStream: true}
		call.Failure.Message = strings.TrimPrefix(p.Message, call.Failure.Error())
	}
	c.calls = append(c.calls, call)
}
