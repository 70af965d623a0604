package config

import (
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Error says where a settings file is wrong.
type Error struct {
	Path   string
	Line   int // from 1; 0 when the file as a whole is meant
	Reason string
	// LeftOut: nothing is wrong with the file. The value is missing because the user has
	// not accepted it.
	LeftOut bool
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// NotFoundError says that no space has a file for a provider.
type NotFoundError struct {
	Provider string
	Known    []string // the names there are, sorted
	LeftOut  []Notice // the project has one that does not count
}

func (e *NotFoundError) Error() string {
	said := fmt.Sprintf("no model provider %q; known are %s", item.Shown(e.Provider), strings.Join(item.ShownAll(e.Known), ", "))
	for _, n := range e.LeftOut {
		said += "; " + n.String()
	}
	return said
}
