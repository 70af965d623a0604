package loop

import (
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/handoff"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// The ways out of a conversation that has grown too long.
const (
	contextAdvice = "split the task into smaller directives, let tools return less, or use a model with a larger context window"
	chainAdvice   = "a person can resume the thread; or split the task into smaller directives, or raise continuation.max_chain in coordination.yaml"
)

// fullError says that a call has no room in the context window of its model,
// whether that was seen here (a [limit.ContextFullError]) or the provider said so.
type fullError struct{ cause error }

func (e *fullError) Error() string { return e.cause.Error() }
func (e *fullError) Unwrap() error { return e.cause }

// orFull makes a fullError of an error that is about the context window.
func orFull(err error) error {
	if _, ok := errors.AsType[*limit.ContextFullError](err); ok {
		return &fullError{err}
	}
	return err
}

// noHandoffError says why a thread could not hand over.
type noHandoffError struct {
	why    error
	advice string // what can be done
}

func (e *noHandoffError) Error() string {
	return fmt.Sprintf("there was no handoff, because %v; %s", e.why, e.advice)
}

func (e *noHandoffError) Unwrap() error { return e.why }

// noHandoff adds to the reason for a handoff why there was none.
func noHandoff(cause, why error) error { return fmt.Errorf("%w; %w", cause, why) }

// calledOff reports whether a hook or a person has decided so, and nothing is wrong.
func (e *noHandoffError) calledOff() bool {
	_, vetoed := errors.AsType[*vetoError](e.why)
	_, declined := errors.AsType[*declinedError](e.why)
	return vetoed || declined
}

var (
	errNoMaker    = errors.New("nothing can continue it")
	errNoProgress = errors.New("the thread has not had a turn of its own, and a successor would get no further")
	errNoRoom     = errors.New("the system prompt and the tools leave a successor no room")
)

func tooLong(e *handoff.ChainError) error { return &noHandoffError{why: e, advice: chainAdvice} }

// vetoError says that a hook has called off a handoff.
type vetoError struct {
	hook string // id
	says string // may be empty
}

func (e *vetoError) Error() string {
	if e.says == "" {
		return fmt.Sprintf("hook %q called it off", item.Shown(e.hook))
	}
	return fmt.Sprintf("hook %q called it off: %s", item.Shown(e.hook), e.says)
}

// declinedError says that somebody has declined a handoff.
type declinedError struct{ by string }

func (e *declinedError) Error() string { return "it was declined by " + e.by }
