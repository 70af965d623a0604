package limit

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestRaise(t *testing.T) {
	t.Parallel()
	now := thread.Limits{Turns: 10, Tokens: 1000, Spend: 500_000, DurationSeconds: 60, Spawns: 2, Depth: 1}
	most := thread.Limits{Turns: 20, Tokens: 1000, Spend: 600_000, DurationSeconds: 90, Spawns: 2, Depth: 1}
	turns := &thread.LimitError{Code: TurnsExceeded, Value: "10", Max: "10"}
	for name, c := range map[string]struct {
		values  item.LimitSet
		most    *thread.Limits
		over    *thread.LimitError
		want    func(*thread.Limits)
		wantErr bool
	}{
		"of a root":           {item.LimitSet{"turns": 5000}, nil, turns, func(l *thread.Limits) { l.Turns = 5000 }, false},
		"within the parent":   {item.LimitSet{"turns": 20, "spend": 0.6}, &most, turns, func(l *thread.Limits) { l.Turns, l.Spend = 20, 600_000 }, false},
		"beyond the parent":   {item.LimitSet{"turns": 21}, &most, turns, nil, true},
		"another beyond it":   {item.LimitSet{"turns": 20, "spend": 0.7}, &most, turns, nil, true},
		"the same":            {item.LimitSet{"turns": 10}, nil, turns, nil, true},
		"another limit":       {item.LimitSet{"tokens": 5000}, nil, turns, nil, true},
		"nothing":             {nil, nil, turns, nil, true},
		"lower":               {item.LimitSet{"turns": 20, "tokens": 1}, nil, turns, nil, true},
		"not whole":           {item.LimitSet{"turns": 20.5}, nil, turns, nil, true},
		"unknown":             {item.LimitSet{"steps": 20}, nil, turns, nil, true},
		"less than was used":  {item.LimitSet{"tokens": 1100}, nil, &thread.LimitError{Code: TokensExceeded, Value: "1200"}, nil, true},
		"more than was used":  {item.LimitSet{"tokens": 1201}, nil, &thread.LimitError{Code: TokensExceeded, Value: "1200"}, func(l *thread.Limits) { l.Tokens = 1201 }, false},
		"less than is needed": {item.LimitSet{"spend": 0.51}, nil, &thread.LimitError{Code: SpendExceeded, Value: "$0.5200"}, nil, true},
		"seconds":             {item.LimitSet{"duration_seconds": 61.5}, nil, &thread.LimitError{Code: DurationExceeded, Value: "60.0"}, func(l *thread.Limits) { l.DurationSeconds = 61.5 }, false},
	} {
		want := now
		if c.want != nil {
			c.want(&want)
		}
		got, err := Raise(now, c.values, c.most, c.over)
		if (err != nil) != c.wantErr || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		var value *ValueError
		var unknown *UnknownError
		if err != nil && !errors.As(err, &value) && !errors.As(err, &unknown) && !errors.Is(err, ErrNotRaised) {
			t.Errorf("%s: an error of no kind: %v", name, err)
		}
	}
}

// A raise lowers nothing and passes no bound, whatever is asked for.
func TestRaiseStaysWithin(t *testing.T) {
	t.Parallel()
	limits := rapid.Custom(func(t *rapid.T) thread.Limits {
		return thread.Limits{
			Turns: rapid.IntRange(0, 20).Draw(t, "turns"), Tokens: rapid.Int64Range(0, 20).Draw(t, "tokens"),
			Spend: thread.Micros(rapid.Int64Range(0, 20).Draw(t, "spend")), DurationSeconds: rapid.Float64Range(0, 20).Draw(t, "seconds"),
			Spawns: rapid.IntRange(0, 20).Draw(t, "spawns"), Depth: rapid.IntRange(0, 20).Draw(t, "depth"),
		}
	})
	within := func(l, most thread.Limits) bool {
		return l.Turns <= most.Turns && l.Tokens <= most.Tokens && l.Spend <= most.Spend &&
			l.DurationSeconds <= most.DurationSeconds && l.Spawns <= most.Spawns && l.Depth <= most.Depth
	}
	rapid.Check(t, func(t *rapid.T) {
		parent, now := limits.Draw(t, "parent"), limits.Draw(t, "now")
		left := thread.Micros(rapid.Int64Range(-5, 20).Draw(t, "left"))
		most := Most(now, parent, left)
		values := item.LimitSet{}
		for _, name := range item.LimitNames() {
			if rapid.Bool().Draw(t, "raises "+name) {
				values[name] = float64(rapid.IntRange(0, 25).Draw(t, name))
			}
		}
		got, err := Raise(now, values, &most, &thread.LimitError{Code: TurnsExceeded, Value: "0"})
		if err != nil {
			got = now
		}
		if !within(now, got) || !within(got, most) || got.Spend > now.Spend+max(0, left) {
			t.Fatalf("%+v raised by %v within %+v (%s left) is %+v (%v)", now, values, parent, left, got, err)
		}
	})
}
