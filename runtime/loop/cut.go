package loop

import (
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The messages to a model whose answer the output limit has cut off, which is no sign of
// being done. Mere thoughts are not sent back, so that there is nothing to continue.
const (
	cutOff  = "Your answer was cut off by the output limit. Continue exactly where it stopped, or act with a tool call."
	cutMute = "Your thoughts used up the output limit, and you said nothing: your answer was cut off. Think less, then act with a tool call, or answer."
)

// maxMute is how many answers in a row may be nothing but thoughts that were cut off.
// Each is paid in full, and the next one is given no more to go on with.
const maxMute = 2

// cuts are the answers that the output limit has cut off.
type cuts struct {
	times int // in all, and not by a limit of the thread
	mute  int // in a row, of nothing but thoughts
	most  int // tokens that the last answer was given
}

// note looks at an answer of a model.
func (c *cuts) note(answered *call, choice provider.Choice) {
	a := answered.answer
	cut := a.StopReason == llm.StopMaxTokens
	if cut && answered.allowance >= choice.MaxOutput {
		c.times++
	}
	if !cut || len(toolCalls(a)) > 0 || llm.TextOf(a.Blocks) != "" {
		c.mute = 0
		return
	}
	c.mute++
	c.most = answered.allowance
}

// wanted is how long the next answer may be, where as much is left. After one of nothing
// but thoughts it is as long as the model's longest, and twice as long as else where that
// is not known: as many thoughts would fill the same again.
func (c *cuts) wanted(choice provider.Choice) int {
	switch {
	case c.mute == 0:
		return choice.MaxOutput
	case choice.Model.MaxOutputTokens > 0:
		return choice.Model.MaxOutputTokens
	}
	return 2 * choice.MaxOutput
}

// goOn asks the model of r to go on, unless it has only thought too often.
func (c *cuts) goOn(r *run) (*ended, error) {
	switch {
	case c.mute == 0:
		return nil, r.say(cutOff)
	case c.mute < maxMute:
		return nil, r.say(cutMute)
	}
	choice := r.model.choice
	return nil, &muteError{
		tokens: c.most, bounded: c.most < c.wanted(choice), full: isFull(r.contextUse()), longest: choice.Model.MaxOutputTokens,
	}
}

// muteError is the end of a thread whose model thinks for as long as an answer may be.
type muteError struct {
	tokens  int  // of the last answer
	bounded bool // by limits of the thread, or by the context window
	full    bool // the context window is
	longest int  // that the model can give; 0: not known
}

func (e *muteError) Error() string {
	advice := "raise max_output_tokens in agent.yaml, or ask for less effort"
	switch {
	case e.bounded && e.full:
		advice = "the context window leaves no more: use a model with a larger one, or ask for less effort"
	case e.bounded:
		advice = "the thread's limits leave no more: raise them, or ask for less effort"
	case e.longest > 0:
		advice = "the model gives no more: ask for less effort"
	}
	return fmt.Sprintf("%d answers in a row were cut off with nothing but thoughts in them, the last after %d tokens; %s", maxMute, e.tokens, advice)
}

// warning says of a thread that a limit has ended by err that answers were cut off:
// the limit may not be what it lacked.
func (c *cuts) warning(err error) []string {
	if _, over := errors.AsType[*thread.LimitError](err); !over || c.times == 0 {
		return nil
	}
	answers := "1 answer was"
	if c.times > 1 {
		answers = fmt.Sprintf("%d answers were", c.times)
	}
	return []string{answers + " cut off by the output limit (max_output_tokens in agent.yaml)"}
}
