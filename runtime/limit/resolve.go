package limit

import (
	"fmt"
	"maps"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// DepthError says that the thread would lie deeper than its parent may have
// descendants.
type DepthError struct {
	ParentDepth int // levels of threads the parent may have below it
}

func (e *DepthError) Error() string {
	return fmt.Sprintf("depth limit reached: the parent may have %d levels of threads below it", e.ParentDepth)
}

// Resolve lays the sets over each other, each over the one before it, and caps
// the result by the parent's limits (nil for a root). A child may have one
// level of descendants fewer than its parent; when that is below zero the error
// is a *[DepthError]. A limit that no layer sets, or a bad value in any of
// them, is a *[ValueError].
func Resolve(defaults, directive, overrides item.LimitSet, parent *thread.Limits) (thread.Limits, error) {
	set := make(item.LimitSet)
	for _, layer := range []item.LimitSet{defaults, directive, overrides} {
		if err := check(layer); err != nil {
			return thread.Limits{}, err
		}
		maps.Copy(set, layer)
	}
	for _, name := range item.LimitNames() {
		if _, ok := set[name]; !ok {
			return thread.Limits{}, &ValueError{Name: name, Value: "nothing", Reason: "no layer sets it"}
		}
	}
	l, err := limitsOf(set)
	if err != nil || parent == nil {
		return l, err
	}
	if parent.Depth < 1 {
		return thread.Limits{}, &DepthError{ParentDepth: parent.Depth}
	}
	return bounded(l, *parent), nil
}

// limitsOf reads a set that has every limit.
func limitsOf(set item.LimitSet) (thread.Limits, error) {
	spend, err := thread.Dollars(set["spend"])
	if err != nil {
		return thread.Limits{}, &ValueError{Name: "spend", Value: set["spend"], Reason: err.Error()}
	}
	return thread.Limits{
		Turns:           int(set["turns"]),
		Tokens:          int64(set["tokens"]),
		Spend:           spend,
		DurationSeconds: set["duration_seconds"],
		Spawns:          int(set["spawns"]),
		Depth:           int(set["depth"]),
	}, nil
}

// bounded is a child's limits within its parent's.
func bounded(l, parent thread.Limits) thread.Limits {
	return thread.Limits{
		Turns:           min(l.Turns, parent.Turns),
		Tokens:          min(l.Tokens, parent.Tokens),
		Spend:           min(l.Spend, parent.Spend),
		DurationSeconds: min(l.DurationSeconds, parent.DurationSeconds),
		Spawns:          min(l.Spawns, parent.Spawns),
		Depth:           min(l.Depth, parent.Depth-1),
	}
}
