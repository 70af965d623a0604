package limit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// prefix may stand in front of every name: max_turns is turns.
const prefix = "max_"

// Most a limit can be, which keeps sums and conversions away from overflow.
const (
	mostCounted = 1e12 // turns, tokens, spawns, levels
	mostOther   = 1e9  // dollars, seconds
)

// counted reports whether a limit counts something, and so must be whole.
func counted(name string) bool { return name != "spend" && name != "duration_seconds" }

// UnknownError names limits that do not exist.
type UnknownError struct {
	Names []string // sorted
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown limits: %s; valid are %s, each also with %s in front",
		strings.Join(e.Names, ", "), strings.Join(item.LimitNames(), ", "), prefix)
}

// ValueError says why a limit cannot have its value.
type ValueError struct {
	Name   string
	Value  any
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("limit %s = %v: %s", e.Name, e.Value, e.Reason)
}

// ParseOverrides reads limit_overrides as a caller gave them. Unknown names are
// an *[UnknownError]; a value that is negative, not finite, or not whole
// where it counts something is a *[ValueError].
func ParseOverrides(raw item.LimitSet) (item.LimitSet, error) {
	names := slices.Sorted(maps.Keys(raw))
	var unknown []string
	for _, name := range names {
		if !slices.Contains(item.LimitNames(), strings.TrimPrefix(name, prefix)) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, &UnknownError{Names: unknown}
	}

	set := make(item.LimitSet, len(raw))
	for _, name := range names {
		canonical := strings.TrimPrefix(name, prefix)
		if _, twice := set[canonical]; twice {
			return nil, &ValueError{Name: canonical, Value: raw[name], Reason: "it is given twice, with and without " + prefix}
		}
		set[canonical] = raw[name]
	}
	if err := check(set); err != nil {
		return nil, err
	}
	return set, nil
}

// check refuses names and values no layer may have.
func check(set item.LimitSet) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !slices.Contains(item.LimitNames(), name) {
			return &UnknownError{Names: []string{name}}
		}
		if reason := objection(name, set[name]); reason != "" {
			return &ValueError{Name: name, Value: set[name], Reason: reason}
		}
	}
	return nil
}

// objection says why a limit cannot have that value; empty when it can.
func objection(name string, value float64) string {
	most := float64(mostOther)
	if counted(name) {
		most = mostCounted
	}
	switch {
	case math.IsNaN(value), math.IsInf(value, 0):
		return "it is not a finite number"
	case value < 0:
		return "it is negative"
	case value > most:
		return fmt.Sprintf("it is more than %.0f", most)
	case counted(name) && value != math.Trunc(value):
		return "it is not a whole number"
	default:
		return ""
	}
}
