package limit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// ErrNotRaised says that new limits leave the thread where it is.
var ErrNotRaised = errors.New("not raised")

// Raise returns the limits of a thread under new values for some of them. None
// may be lowered, nor, where most is not nil, pass it. The limit that was hit,
// which over names, must come to more than was needed of it. A breach
// of this is a *[ValueError], an *[UnknownError] or [ErrNotRaised].
func Raise(now thread.Limits, values item.LimitSet, most *thread.Limits, over *thread.LimitError) (thread.Limits, error) {
	if err := check(values); err != nil {
		return now, err
	}
	before, raised := Set(now), Set(now)
	maps.Copy(raised, values)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		switch {
		case value < before[name]:
			return now, &ValueError{Name: name, Value: value, Reason: "it would be lowered; it is " + plain(before[name])}
		case most != nil && value > Set(*most)[name]:
			return now, &ValueError{Name: name, Value: value, Reason: "the most it can be raised to here is " + plain(Set(*most)[name])}
		}
	}
	hit, ok := names[over.Code]
	if !ok {
		return now, fmt.Errorf("bug; %s is no limit", over.Code)
	}
	if used := max(before[hit], reached(over)); raised[hit] <= used {
		return now, fmt.Errorf("%w: %s has to become more than %s", ErrNotRaised, hit, plain(used))
	}
	return limitsOf(raised)
}

// Raised are the limits of a chain when those of its last thread have changed.
func Raised(whole, from, to thread.Limits) thread.Limits {
	whole.Turns += to.Turns - from.Turns
	whole.Tokens += to.Tokens - from.Tokens
	whole.Spend += to.Spend - from.Spend
	whole.DurationSeconds += to.DurationSeconds - from.DurationSeconds
	return whole
}

// reached is how much of the limit was needed; 0 where that is not a number.
func reached(over *thread.LimitError) float64 {
	value, err := strconv.ParseFloat(strings.TrimPrefix(over.Value, "$"), 64)
	if err != nil {
		return 0
	}
	return value
}

// Raisable reports whether the limit that was hit can be raised far enough.
func Raisable(now thread.Limits, most *thread.Limits, over *thread.LimitError) bool {
	hit := names[over.Code]
	return most == nil || Set(*most)[hit] > max(Set(now)[hit], reached(over))
}

// names are the limits that the codes of a [thread.LimitError] are about.
var names = map[string]string{
	TurnsExceeded: "turns", TokensExceeded: "tokens", SpendExceeded: "spend", DurationExceeded: "duration_seconds",
}

// Name is the limit that was hit.
func Name(over *thread.LimitError) string { return names[over.Code] }

// Most is what the limits of a child can be raised to within its parent's.
// Left is what the parent's budget has left. Nothing is less than it is now.
func Most(now, parent thread.Limits, left thread.Micros) thread.Limits {
	most := parent
	most.Depth--
	most.Spend = min(parent.Spend, now.Spend+max(0, left))
	return thread.Limits{
		Turns:           max(now.Turns, most.Turns),
		Tokens:          max(now.Tokens, most.Tokens),
		Spend:           max(now.Spend, most.Spend),
		DurationSeconds: max(now.DurationSeconds, most.DurationSeconds),
		Spawns:          max(now.Spawns, most.Spawns),
		Depth:           max(now.Depth, most.Depth),
	}
}

// Set is limits by name.
func Set(l thread.Limits) item.LimitSet {
	return item.LimitSet{
		"turns": float64(l.Turns), "tokens": float64(l.Tokens), "spend": l.Spend.Dollars(),
		"duration_seconds": l.DurationSeconds, "spawns": float64(l.Spawns), "depth": float64(l.Depth),
	}
}

func plain(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
