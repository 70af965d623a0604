package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// short is the name of an id where nobody else has it. Menus and command lines of
// clients take no slash.
func short(id string) string { return strings.ReplaceAll(id, "/", "-") }

// name is what an offered directive is called. An id that is its own short name has
// no other spelling, and keeps it.
func (s *shelf) name(e resolve.Entry) string {
	called := short(e.ID)
	if e.ID == called {
		return called
	}
	for _, other := range s.called(called) {
		if other.ID != e.ID && s.offered(other) != nil {
			return e.ID
		}
	}
	return called
}

// called are the directives that a name may mean: by id or by short name.
func (s *shelf) called(name string) []resolve.Entry {
	var list []resolve.Entry
	for _, e := range s.entries {
		if len(e.ID) == len(name) && (e.ID == name || short(e.ID) == name) {
			list = append(list, e)
		}
	}
	return list
}

// find is the directive that a name means. Of several the offered ones count, so
// that an item nobody may use takes no name away.
func (s *shelf) find(name string) (resolve.Entry, error) {
	list := s.called(name)
	if len(list) > 1 {
		if offered := slices.DeleteFunc(slices.Clone(list), func(e resolve.Entry) bool { return s.offered(e) == nil }); len(offered) > 0 {
			list = offered
		}
	}
	if i := slices.IndexFunc(list, func(e resolve.Entry) bool { return e.ID == name }); i >= 0 {
		return list[i], nil
	}
	switch len(list) {
	case 1:
		return list[0], nil
	case 0:
		return resolve.Entry{}, s.unknown(name)
	}
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return resolve.Entry{}, errorf("the prompt %q is the short name of %s", item.Shown(name), strings.Join(ids, " and of ")).
		try("the id in full as the name")
}

// unknown says that no directive is called so, and which one nearly is.
func (s *shelf) unknown(name string) error {
	var names []string
	for _, e := range s.entries {
		if item.IsPlain(e.ID) { // an id is the name of a file, and can be a sentence
			names = append(names, short(e.ID))
		}
	}
	e := errorf("there is no prompt %q", item.Shown(name))
	if near := item.Nearest(short(name), names); near != "" {
		return e.try("%s", near)
	}
	return e.try("a name of prompts/list, or the id of a directive; rye-mcp items list tells them")
}

// Error is what a person is told of a request that cannot be answered: what was
// wrong, and what to give instead.
type Error struct {
	Message string
	Try     string
	Err     error // the cause, for Go callers
}

func errorf(format string, args ...any) *Error { return &Error{Message: fmt.Sprintf(format, args...)} }

func (e *Error) try(format string, args ...any) *Error {
	e.Try = fmt.Sprintf(format, args...)
	return e
}

// Error implements error, in one line, as clients show it.
func (e *Error) Error() string {
	if e.Try == "" {
		return e.Message
	}
	return e.Message + ". Try: " + e.Try
}

func (e *Error) Unwrap() error { return e.Err }
