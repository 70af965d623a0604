package loop

import (
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
)

// A server on this machine may drop the beginning of a request that is longer than the
// context it was started with, and answer what is left: Ollama does. Text of natural
// language and of programs has a token in four characters, so a count of a third of that
// tells of it, where the request is long enough to judge.
const (
	fewTokens   = 3
	leastToTell = 8000 // characters
)

// tellCutInput warns, once, where the model cannot have been given all that was sent. It is
// told before the answer is part of the conversation.
func (c *call) tellCutInput(r *run) {
	u := c.answer.Usage
	sent := r.conversation.said + r.fixedChars()
	estimated, _ := limit.ContextUse(r.model.choice.Model, 0, sent)
	if !r.model.choice.Local || r.model.toldCut || sent < leastToTell || !u.Reported || u.Input() >= estimated/fewTokens {
		return
	}
	r.model.toldCut = true
	r.warn(fmt.Sprintf("%s counted %d tokens where about %d were sent: its server seems to cut requests off at their beginning. "+
		"Start it with a longer context (Ollama: OLLAMA_CONTEXT_LENGTH), and set that as context_window of the model", r.model.choice.Ref(), u.Input(), estimated))
}
