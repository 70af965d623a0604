package item

import (
	"fmt"
	"slices"
	"strings"
)

// Part is a part of a directive that says what its thread may do, spend or must be
// given.
type Part string

// The parts.
const (
	PartPermissions Part = "permissions"
	PartLimits      Part = "limits"
	PartInputs      Part = "inputs"
	PartOutputs     Part = "outputs"
	PartModel       Part = "model"
	PartExtends     Part = "extends" // which gives permissions, too
	PartWorkspace   Part = "workspace"
	PartRetry       Part = "retry"
)

// UnknownName is a name in a directive that the format does not know: an element,
// an attribute, a type.
type UnknownName struct {
	Line    int    // in the file, from 1
	Text    string // what is wrong
	Nearest string // what may have been meant; may be empty
	// Part is the part that the name stands in or near; empty: none, so that the
	// name only has no effect.
	Part Part
}

func (n UnknownName) String() string {
	if n.Nearest == "" {
		return n.Text
	}
	return fmt.Sprintf("%s; did you mean %s?", n.Text, n.Nearest)
}

// UnknownNames are those of the file of a directive with this id, which the
// attribute name should repeat.
func (d *DirectiveDoc) UnknownNames(id string) []UnknownName {
	if d.Name == id || strings.HasSuffix(id, "/"+d.Name) {
		return d.Unknown
	}
	misnamed := UnknownName{
		Line: d.Line, Text: fmt.Sprintf("<directive name=%q> stands in the file of %s, whose name counts", Shown(d.Name), Shown(id)),
		Nearest: fmt.Sprintf("name=%q", Shown(id[strings.LastIndexByte(id, '/')+1:])),
	}
	return append([]UnknownName{misnamed}, d.Unknown...)
}

// CheckNames refuses a directive with a name that the format does not know where
// that could change what one of the parts says. No parts mean all of them. It
// returns the other unknown names as warnings. The error is an
// [*UnknownNamesError].
func (d *DirectiveDoc) CheckNames(id, path string, parts ...Part) (warnings []string, err error) {
	var stop []UnknownName
	for _, name := range d.UnknownNames(id) {
		if name.Part != "" && (len(parts) == 0 || slices.Contains(parts, name.Part)) {
			stop = append(stop, name)
		} else {
			warnings = append(warnings, fmt.Sprintf("%s:%d: %s", path, name.Line, name))
		}
	}
	if len(stop) > 0 {
		return warnings, &UnknownNamesError{Directive: id, Path: path, Names: stop}
	}
	return warnings, nil
}

// UnknownNamesError says that a directive is not started because of names that the
// format does not know.
type UnknownNamesError struct {
	Directive string
	Path      string
	Names     []UnknownName // at least one
}

func (e *UnknownNamesError) Error() string {
	list := make([]string, len(e.Names))
	for i, name := range e.Names {
		list[i] = fmt.Sprintf("%s:%d: %s", e.Path, name.Line, name)
	}
	return fmt.Sprintf("directive %s is not started, as what it says of its %s is not understood: %s",
		e.Directive, e.Names[0].Part, strings.Join(list, "; "))
}
