package langgraph

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Facts about an answer, or about there being none.
var (
	// ErrNotFound: there is no such thread.
	ErrNotFound = errors.New("the LangGraph server has no such thread")
	// ErrUnreachable: nothing has answered, or the server says that it cannot at the moment.
	ErrUnreachable = errors.New("the LangGraph server cannot be reached")
	// ErrBusy: a run is at work on the thread there.
	ErrBusy = errors.New("the LangGraph server works on this thread")
	// ErrRefused: the server will not take what was sent.
	ErrRefused = errors.New("the LangGraph server refuses it")
	// ErrDenied: the key is missing or wrong.
	ErrDenied = errors.New("the LangGraph server wants another key")
	// ErrNonsense: the answer is none that such a server gives.
	ErrNonsense = errors.New("this is no answer of a LangGraph server")
)

// Error is a request that has failed. It wraps one of the facts above.
type Error struct {
	Fact   error
	Status int           // of HTTP; 0: there was no answer
	Said   string        // words of the server or of the connection, bounded; never of a key
	After  time.Duration // what the server asks to wait; 0: nothing
}

func (e *Error) Error() string {
	switch {
	case e.Status != 0 && e.Said != "":
		return fmt.Sprintf("%v: %d: %s", e.Fact, e.Status, e.Said)
	case e.Status != 0:
		return fmt.Sprintf("%v: %d", e.Fact, e.Status)
	}
	return fmt.Sprintf("%v: %s", e.Fact, e.Said)
}

func (e *Error) Unwrap() error { return e.Fact }

// factOf is what a status that is no success says.
func factOf(status int) error {
	switch {
	case status == http.StatusNotFound:
		return ErrNotFound
	case status == http.StatusConflict, status == http.StatusLocked:
		return ErrBusy
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return ErrDenied
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return ErrUnreachable
	case status/100 == 4:
		return ErrRefused
	}
	return ErrNonsense
}
