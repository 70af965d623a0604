package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Notice says that something in a project's settings does not count, because the
// user has not accepted it.
type Notice struct {
	Path string // of the file
	File string // the same below .ai/config, with slashes
	Line int    // from 1; 0 when the file as a whole is meant, or no longer says it
	Key  []string
	// Holds and Says are the value that holds and the one in the file; nil for none.
	Holds, Says any
	// UserOnly: accepting the settings of the project does not change it.
	UserOnly bool
	// Since: the user has accepted another version of the file.
	Since bool
	// Fault is what is wrong with a file that was only looked at.
	Fault string
}

// askThePerson ends a notice. It names no command: a model could try it.
const askThePerson = "ask the person"

// String is the notice for models, and for people who are told by them.
func (n Notice) String() string {
	if n.UserOnly {
		return n.Fact()
	}
	return n.Fact() + "; " + askThePerson
}

// Fact is the notice for a person, who is told beside it what to do.
func (n Notice) Fact() string {
	where := n.Path
	if n.Line > 0 {
		where = fmt.Sprintf("%s:%d", n.Path, n.Line)
	}
	switch {
	case n.UserOnly:
		return fmt.Sprintf("%s: %s: read from the user space only", where, dotted(n.Key))
	case len(n.Key) == 0 && n.Since:
		return where + ": left out, as it was changed after the person accepted the settings of this project, and the accepted copy holds"
	case len(n.Key) == 0:
		return where + ": left out, as the person has not accepted the settings of this project"
	}
	return fmt.Sprintf("%s: %s: %s is left out and %s holds, as the person has not accepted it",
		where, dotted(n.Key), inBrief(n.Says), inBrief(n.Holds))
}

// inBrief is a value in a notice, which models read: no words of the project's.
func inBrief(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case string:
		if v != "" && !item.IsPlain(v) {
			return "a text"
		}
		return strconv.Quote(v)
	case int, float64, bool:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	default:
		return "a map"
	}
}

// maxNotices bounds the notices about one project, whose files can hold anything.
const maxNotices = 64

// Loosening are the notices that accepting the settings would end.
func Loosening(notices []Notice) []Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n Notice) bool { return n.UserOnly })
}

// Strings are the notices as warnings.
func Strings(notices []Notice) []string {
	all := make([]string, 0, len(notices))
	for _, n := range notices {
		all = append(all, n.String())
	}
	return all
}
