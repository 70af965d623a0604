package expr

import (
	"errors"
	"fmt"
)

// Error says what is wrong with a condition, and where.
type Error struct {
	Place  string // within what was parsed: "any[1].op", or "character 7"; empty: the whole
	Reason string
}

func (e *Error) Error() string {
	if e.Place == "" {
		return e.Reason
	}
	return e.Place + ": " + e.Reason
}

func errorAt(place, format string, args ...any) error {
	return &Error{Place: place, Reason: fmt.Sprintf(format, args...)}
}

// reason is what is wrong, without the place.
func reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
