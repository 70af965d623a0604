package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// alias is another name under which an argument is taken.
type alias struct {
	name  string // as it is given
	means string // the declared argument that it means
	sets  string // an argument that has the name itself as its value then; or empty
}

// aliasesOf reads the alias tags of the fields of t: other names of an argument,
// separated by commas. A name with a colon says something about another argument
// too: directive:item_type means that item_type is "directive". A name that the
// input declares itself is no alias.
func aliasesOf(t reflect.Type) []alias {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var all []alias
	declared := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		declared[name] = true
		if tag := f.Tag.Get("alias"); tag != "" {
			for given := range strings.SplitSeq(tag, ",") {
				other, sets, _ := strings.Cut(given, ":")
				all = append(all, alias{other, name, sets})
			}
		}
	}
	return slices.DeleteFunc(all, func(a alias) bool { return declared[a.name] })
}

// rename puts arguments under their declared names, and tells which it has put there.
// An input that would mean two things at once is named.
func rename(args map[string]any, aliases []alias) (renamed []alias, problems []string) {
	for _, a := range aliases {
		value, given := args[a.name]
		if !given {
			continue
		}
		if before, twice := args[a.means]; twice && !reflect.DeepEqual(before, value) {
			problems = append(problems, fmt.Sprintf("%q and %q mean the same and are both given", a.means, a.name))
			continue
		}
		if kind, other := args[a.sets]; a.sets != "" && other && kind != a.name {
			problems = append(problems, fmt.Sprintf("%q says that %q is %q, which is given as %s", a.name, a.sets, a.name, show(kind)))
			continue
		}
		delete(args, a.name)
		args[a.means] = value
		if a.sets != "" {
			args[a.sets] = a.name
		}
		renamed = append(renamed, a)
	}
	return renamed, problems
}

// inTheirWords is a refusal that calls arguments what the caller does.
func inTheirWords(err error, renamed []alias) error {
	var fault *Fault
	if len(renamed) == 0 || !errors.As(err, &fault) {
		return err
	}
	said := fault.Message
	for _, a := range renamed {
		said = strings.ReplaceAll(said, strconv.Quote(a.means)+" ", fmt.Sprintf("%q (%s) ", a.name, a.means))
	}
	theirs := *fault
	theirs.Message = said
	return &theirs
}

// encodeArguments writes arguments again.
func encodeArguments(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
