package limit

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func defaults() item.LimitSet {
	return item.LimitSet{"turns": 15, "tokens": 200_000, "spend": 0.5, "duration_seconds": 1800, "spawns": 20, "depth": 5}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	root, err := Resolve(defaults(), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		directive, overrides item.LimitSet
		parent               *thread.Limits
		want                 thread.Limits
	}{
		"defaults": {nil, nil, nil, thread.Limits{Turns: 15, Tokens: 200_000, Spend: 500_000, DurationSeconds: 1800, Spawns: 20, Depth: 5}},
		"the example of the specification": {
			item.LimitSet{"turns": 30},
			item.LimitSet{"turns": 10, "spend": 0.10},
			&thread.Limits{Turns: 30, Tokens: 200_000, Spend: 1_000_000, DurationSeconds: 1800, Spawns: 20, Depth: 4},
			thread.Limits{Turns: 10, Tokens: 200_000, Spend: 100_000, DurationSeconds: 1800, Spawns: 20, Depth: 3},
		},
		"the parent caps everything": {
			item.LimitSet{"turns": 99, "tokens": 1e9, "spend": 9, "duration_seconds": 1e6, "spawns": 99, "depth": 99},
			nil, &root,
			thread.Limits{Turns: 15, Tokens: 200_000, Spend: 500_000, DurationSeconds: 1800, Spawns: 20, Depth: 4},
		},
		"a child may want less depth": {
			item.LimitSet{"depth": 0}, nil, &root,
			thread.Limits{Turns: 15, Tokens: 200_000, Spend: 500_000, DurationSeconds: 1800, Spawns: 20, Depth: 0},
		},
		"zero overrides": {
			nil, item.LimitSet{"spend": 0, "spawns": 0}, nil,
			thread.Limits{Turns: 15, Tokens: 200_000, Spend: 0, DurationSeconds: 1800, Spawns: 0, Depth: 5},
		},
	} {
		got, err := Resolve(defaults(), c.directive, c.overrides, c.parent)
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	bottom := thread.Limits{Turns: 1, Tokens: 1, Spend: 1, DurationSeconds: 1, Spawns: 1, Depth: 0}
	_, err := Resolve(defaults(), nil, nil, &bottom)
	if depth, ok := errors.AsType[*DepthError](err); !ok || depth.ParentDepth != 0 {
		t.Errorf("below the deepest: %v", err)
	}
	incomplete := defaults()
	delete(incomplete, "spawns")
	for name, layers := range map[string][3]item.LimitSet{
		"nothing sets a limit":    {incomplete, nil, nil},
		"negative in a directive": {defaults(), {"turns": -1}, nil},
		"infinite":                {defaults(), nil, {"spend": math.Inf(1)}},
		"half a turn":             {defaults(), {"turns": 1.5}, nil},
	} {
		_, err := Resolve(layers[0], layers[1], layers[2], nil)
		if _, ok := errors.AsType[*ValueError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = Resolve(defaults(), item.LimitSet{"max_turns": 1}, nil, nil)
	if _, ok := errors.AsType[*UnknownError](err); !ok {
		t.Errorf("a name that is not canonical: %v", err)
	}
}

// No child exceeds its parent, and every chain of children ends.
func TestResolveNeverExceedsParent(t *testing.T) {
	t.Parallel()
	value := func(rt *rapid.T, name string) float64 { return float64(rapid.IntRange(0, 1_000).Draw(rt, name)) }
	rapid.Check(t, func(rt *rapid.T) {
		set := item.LimitSet{}
		for _, name := range item.LimitNames() {
			set[name] = value(rt, name)
		}
		parent := thread.Limits{
			Turns: int(value(rt, "pt")), Tokens: int64(value(rt, "pk")), Spend: thread.Micros(value(rt, "ps")),
			DurationSeconds: value(rt, "pd"), Spawns: int(value(rt, "pn")), Depth: int(value(rt, "pp")),
		}
		got, err := Resolve(defaults(), nil, set, &parent)
		if parent.Depth == 0 {
			if _, ok := errors.AsType[*DepthError](err); !ok {
				rt.Fatalf("got %v", err)
			}
			return
		}
		if err != nil {
			rt.Fatalf("%v", err)
		}
		if got.Turns > parent.Turns || got.Tokens > parent.Tokens || got.Spend > parent.Spend ||
			got.DurationSeconds > parent.DurationSeconds || got.Spawns > parent.Spawns || got.Depth >= parent.Depth {
			rt.Fatalf("%+v exceeds %+v", got, parent)
		}
	})
}

func TestParseOverrides(t *testing.T) {
	t.Parallel()
	got, err := ParseOverrides(item.LimitSet{
		"max_turns": 10, "spend": 0.1, "tokens": 5, "max_depth": 2, "duration_seconds": 1.5,
	})
	want := item.LimitSet{"turns": 10, "spend": 0.1, "tokens": 5, "depth": 2, "duration_seconds": 1.5}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := ParseOverrides(nil); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v, %v", got, err)
	}

	_, err = ParseOverrides(item.LimitSet{"turn": 1, "budget": 2, "turns": -1})
	unknown, ok := errors.AsType[*UnknownError](err)
	if !ok || !reflect.DeepEqual(unknown.Names, []string{"budget", "turn"}) || !strings.Contains(err.Error(), "duration_seconds") {
		t.Errorf("unknown names: %v", err)
	}
	for _, c := range []struct {
		name  string
		value float64
		why   string
	}{
		{"spend", -0.01, "negative"},
		{"spend", math.NaN(), "finite"},
		{"spend", math.Inf(1), "finite"},
		{"spend", 2e9, "more than 1000000000"},
		{"turns", 1e13, "more than 1000000000000"},
		{"turns", 2.5, "whole"},
	} {
		_, err := ParseOverrides(item.LimitSet{c.name: c.value})
		if bad, ok := errors.AsType[*ValueError](err); !ok || bad.Name != c.name || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s = %v: %v", c.name, c.value, err)
		}
	}
	if _, err := ParseOverrides(item.LimitSet{"turns": 1, "max_turns": 2}); err == nil {
		t.Error("a limit given twice is accepted")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	l := thread.Limits{Turns: 10, Tokens: 1000, Spend: 100_000, DurationSeconds: 60}
	for name, c := range map[string]struct {
		limits  thread.Limits
		cost    thread.Cost
		elapsed time.Duration
		want    string
	}{
		"fresh":                {l, thread.Cost{}, 0, ""},
		"just below":           {l, thread.Cost{Turns: 9, InputTokens: 999, Spend: 99_999}, 60*time.Second - 1, ""},
		"turns":                {l, thread.Cost{Turns: 10}, 0, "Limit exceeded: turns_exceeded (10/10)"},
		"tokens of all":        {l, thread.Cost{InputTokens: 500, OutputTokens: 200, CacheReadTokens: 200, CacheWriteTokens: 101}, 0, "Limit exceeded: tokens_exceeded (1001/1000)"},
		"tokens reached":       {l, thread.Cost{InputTokens: 1000}, 0, "Limit exceeded: tokens_exceeded (1000/1000)"},
		"spend":                {l, thread.Cost{Spend: 100_000}, 0, "Limit exceeded: spend_exceeded ($0.1000/$0.1000)"},
		"duration":             {l, thread.Cost{}, time.Minute, "Limit exceeded: duration_exceeded (60.0/60)"},
		"no turns at all":      {thread.Limits{Tokens: 1, DurationSeconds: 1}, thread.Cost{}, 0, "Limit exceeded: turns_exceeded (0/0)"},
		"free under no":        {thread.Limits{Turns: 1, Tokens: 1, DurationSeconds: 1}, thread.Cost{}, 0, ""},
		"priced under no":      {thread.Limits{Turns: 1, Tokens: 1, DurationSeconds: 1}, thread.Cost{Spend: 1}, 0, "Limit exceeded: spend_exceeded ($0.000001/$0.0000)"},
		"turns are told first": {l, thread.Cost{Turns: 11, Spend: 100_000}, time.Hour, "Limit exceeded: turns_exceeded (11/10)"},
	} {
		got := ""
		if err := Check(c.limits, c.cost, c.elapsed); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestInChain: what a chain has used of a limit is told by what the whole chain may use.
func TestInChain(t *testing.T) {
	t.Parallel()
	whole := thread.Limits{Turns: 10, Tokens: 1000, Spend: 100_000, DurationSeconds: 60}
	now := thread.Limits{Turns: 3, Tokens: 400, Spend: 87_654, DurationSeconds: 12.25}
	for name, c := range map[string]struct {
		over *thread.LimitError
		now  thread.Limits
		want string
	}{
		"turns":               {&thread.LimitError{Code: TurnsExceeded, Value: "3", Max: "3"}, now, "turns_exceeded (10/10); the threads that this one continues have used 7 of it"},
		"tokens":              {&thread.LimitError{Code: TokensExceeded, Value: "450", Max: "400"}, now, "tokens_exceeded (1050/1000); the threads that this one continues have used 600 of it"},
		"spend":               {spendExceeded(87_654, 87_654), now, "spend_exceeded ($0.1000/$0.1000); the threads that this one continues have used $0.0123 of it"},
		"duration":            {&thread.LimitError{Code: DurationExceeded, Value: "12.3", Max: "12.25"}, now, "duration_exceeded (60.1/60); the threads that this one continues have used 47.8 of it"},
		"a moment before":     {&thread.LimitError{Code: DurationExceeded, Value: "60", Max: "59.97"}, thread.Limits{DurationSeconds: 59.97}, "duration_exceeded (60/59.97)"},
		"begun anew":          {&thread.LimitError{Code: TurnsExceeded, Value: "10", Max: "10"}, whole, "turns_exceeded (10/10)"},
		"more was given back": {&thread.LimitError{Code: SpendExceeded, Value: "$0.2000", Max: "$0.2000"}, thread.Limits{Spend: 200_000}, "spend_exceeded ($0.2000/$0.2000)"},
	} {
		c.over.Chain = InChain(c.over, c.now, whole)
		if got := c.over.Error(); got != "Limit exceeded: "+c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	raised := now
	raised.Turns, raised.Spend = 5, 100_000
	if got := Raised(whole, now, raised); got.Turns != 12 || got.Spend != 112_346 || got.Tokens != 1000 || got.DurationSeconds != 60 {
		t.Errorf("raised: %+v", got)
	}
}

// call is a call with room in every respect, at 3 and 15 dollars a million.
func call() AllowanceInput {
	return AllowanceInput{
		Limits: thread.Limits{Tokens: 1_000_000, Spend: 1_000_000},
		Left:   1_000_000,
		Model: llm.Model{
			ContextWindow: 200_000, MaxOutputTokens: 64_000,
			Price: llm.Price{Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000, CacheWrite: 3_750_000},
		},
		ContextTokens: 1_000, NewBytes: 360, Wanted: 8_192,
	}
}

func TestAllowance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*AllowanceInput)
		want   int
		err    string
	}{
		"as wanted":       {func(*AllowanceInput) {}, 8_192, ""},
		"model's longest": {func(in *AllowanceInput) { in.Model.MaxOutputTokens = 4_096 }, 4_096, ""},
		"nothing wanted":  {func(in *AllowanceInput) { in.Wanted = 0 }, 64_000, ""},
		// 200 000 - 1 000 - 360/4 - 640
		"unknown window": {func(in *AllowanceInput) {
			in.Wanted, in.Model.MaxOutputTokens, in.Model.ContextWindow, in.Model.Price = 0, 0, 0, llm.Price{}
		}, 198_270, ""},
		"window nearly full": {func(in *AllowanceInput) { in.Model.ContextWindow = 2_730 }, 1_000, ""},
		"window full": {func(in *AllowanceInput) { in.Model.ContextWindow = 1_985 }, 0,
			"context window is full: about 1730 of 1985 tokens are used"},
		"tokens nearly used": {func(in *AllowanceInput) { in.Limits.Tokens, in.Used.InputTokens = 10_000, 7_270 }, 1_000, ""},
		"tokens used":        {func(in *AllowanceInput) { in.Limits.Tokens, in.Used.InputTokens = 10_000, 8_015 }, MinOutput, ""},
		// Input: 2 000 tokens at 3.75 a million are 7 500 micro-dollars; the rest buys
		// output at 15 each.
		"money for 1000":  {func(in *AllowanceInput) { in.Left = 7_500 + 15_000 }, 1_000, ""},
		"money for least": {func(in *AllowanceInput) { in.Left = 7_500 + 256*15 }, 256, ""},
		"money for less": {func(in *AllowanceInput) { in.Left, in.Limits.Spend = 7_500+256*15-1, 20_000 }, 0,
			"Limit exceeded: spend_exceeded ($0.0200/$0.0200)"},
		"no money":            {func(in *AllowanceInput) { in.Left = 0 }, 0, "Limit exceeded: spend_exceeded ($1.0113/$1.0000)"},
		"overdrawn":           {func(in *AllowanceInput) { in.Left = -5 }, 0, "Limit exceeded: spend_exceeded ($1.0113/$1.0000)"},
		"no money, but free":  {func(in *AllowanceInput) { in.Left, in.Model.Price = 0, llm.Price{} }, 8_192, ""},
		"fewer than least":    {func(in *AllowanceInput) { in.Wanted, in.Left = 100, 7_500+100*15 }, 100, ""},
		"absurd price":        {func(in *AllowanceInput) { in.Model.Price.Input, in.Left = math.MaxInt64, math.MaxInt64 }, 0, "spend_exceeded"},
		"absurd size":         {func(in *AllowanceInput) { in.NewBytes = math.MaxInt64 }, 0, "context window is full"},
		"report that is junk": {func(in *AllowanceInput) { in.ContextTokens, in.NewBytes = -1<<63, -1 }, 8_192, ""},
	} {
		in := call()
		c.change(&in)
		got, err := Allowance(in)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s: got %d, %v, want %d", name, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: got %d, %v, want %s", name, got, err, c.err)
		}
	}
}

// A call that is billed within the bound costs no more than was left, nor than its worst cost,
// which is a micro-dollar too much at most.
func TestAllowanceBoundsCost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		price := func(name string) int64 { return rapid.Int64Range(0, 100_000_000).Draw(rt, name) }
		in := AllowanceInput{
			Limits:        thread.Limits{Tokens: 1e12, Spend: 1e12},
			Left:          thread.Micros(rapid.Int64Range(0, 5_000_000).Draw(rt, "left")),
			Model:         llm.Model{Price: llm.Price{Input: price("in"), Output: price("out"), CacheRead: price("read"), CacheWrite: price("write")}},
			ContextTokens: rapid.Int64Range(0, 50_000).Draw(rt, "context"),
			NewBytes:      rapid.Int64Range(0, 50_000).Draw(rt, "bytes"),
			Wanted:        rapid.IntRange(0, 10_000).Draw(rt, "wanted"),
		}
		output, err := Allowance(in)
		if err != nil {
			if le, ok := errors.AsType[*thread.LimitError](err); !ok || le.Code != SpendExceeded {
				rt.Fatalf("%v", err)
			}
			return
		}
		worst := in.ContextTokens + in.NewBytes + overheadTokens
		var u llm.Usage
		u.InputTokens = rapid.Int64Range(0, worst).Draw(rt, "input")
		u.CacheReadTokens = rapid.Int64Range(0, worst-u.InputTokens).Draw(rt, "cached")
		u.CacheWriteTokens = worst - u.InputTokens - u.CacheReadTokens
		u.OutputTokens = int64(output)
		if cost := in.Model.Price.Cost(u); cost > in.Left {
			rt.Fatalf("%+v costs %v of %v", u, cost, in.Left)
		}
		worstCost := WorstCost(in, output)
		if cost := in.Model.Price.Cost(u); cost > worstCost {
			rt.Fatalf("%+v costs %v, and at worst %v", u, cost, worstCost)
		}
		highest := in.Model.Price
		highest.Input = highest.MaxInput()
		if cost := highest.Cost(llm.Usage{InputTokens: worst, OutputTokens: int64(output)}); cost < worstCost-1 || cost > worstCost {
			rt.Fatalf("at worst it costs %v, not %v", cost, worstCost)
		}
	})
}

// An answer that is refused could not have been paid at its shortest, and one
// that is allowed could not have been longer.
func TestAllowanceIsLargest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		in := call()
		in.Left = thread.Micros(rapid.Int64Range(0, 200_000).Draw(rt, "left"))
		output, err := Allowance(in)
		next := int64(output) + 1
		if err != nil {
			next = MinOutput
		} else if output == in.Wanted {
			return
		}
		u := llm.Usage{CacheWriteTokens: in.ContextTokens + in.NewBytes + overheadTokens, OutputTokens: next}
		if cost := in.Model.Price.Cost(u); cost <= in.Left {
			rt.Fatalf("%d tokens would cost %v of %v", next, cost, in.Left)
		}
	})
}
