package limit

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func TestBilled(t *testing.T) {
	t.Parallel()
	reported := func(in, out int64) llm.Usage { return llm.Usage{InputTokens: in, OutputTokens: out, Reported: true} }
	call := Call{Input: 500, Allowance: 100}
	for name, c := range map[string]struct {
		change func(*Call)
		want   llm.Usage
	}{
		"never left":              {func(*Call) {}, llm.Usage{}},
		"sent, nothing came":      {func(c *Call) { c.Sent = true }, llm.Usage{InputTokens: 500}},
		"some came":               {func(c *Call) { c.Sent, c.Delivered = true, 30 }, llm.Usage{InputTokens: 500, OutputTokens: 30}},
		"more came than allowed":  {func(c *Call) { c.Sent, c.Delivered = true, 300 }, llm.Usage{InputTokens: 500, OutputTokens: 100}},
		"some came, input known":  {func(c *Call) { c.Sent, c.Delivered, c.Usage = true, 30, reported(9, 1) }, reported(9, 30)},
		"begun, input known":      {func(c *Call) { c.Sent, c.Usage = true, reported(9, 1) }, reported(9, 1)},
		"whole":                   {func(c *Call) { c.Whole, c.Sent, c.Delivered, c.Usage = true, true, 30, reported(9, 8) }, reported(9, 8)},
		"whole, nothing reported": {func(c *Call) { c.Whole, c.Sent, c.Delivered = true, true, 30 }, llm.Usage{InputTokens: 500, OutputTokens: 100}},
		"whole, no input":         {func(c *Call) { c.Whole, c.Delivered, c.Usage = true, 30, reported(0, 8) }, llm.Usage{InputTokens: 500, OutputTokens: 8}},
		"whole, no output":        {func(c *Call) { c.Whole, c.Delivered, c.Usage = true, 30, reported(9, 0) }, llm.Usage{InputTokens: 9, OutputTokens: 100}},
		"whole, only zeros":       {func(c *Call) { c.Whole, c.Usage = true, reported(0, 0) }, llm.Usage{InputTokens: 500, OutputTokens: 100}},
		"whole, said nothing":     {func(c *Call) { c.Whole, c.Usage = true, reported(9, 0) }, reported(9, 0)},
		"whole, read from a cache": {func(c *Call) {
			c.Whole, c.Delivered, c.Usage = true, 3, llm.Usage{CacheReadTokens: 7, OutputTokens: 2, Reported: true}
		}, llm.Usage{CacheReadTokens: 7, OutputTokens: 2, Reported: true}},
	} {
		one := call
		c.change(&one)
		if got := one.Billed(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestCheckUsage: a report passes exactly when neither input nor output is more than
// twice what request, answer and window can come to.
func TestCheckUsage(t *testing.T) {
	t.Parallel()
	count := rapid.OneOf(rapid.Int64Range(0, 3000), rapid.SampledFrom([]int64{math.MaxInt64, 9e15, 1844674407370955162}))
	rapid.Check(t, func(t *rapid.T) {
		c := Call{
			Input: rapid.Int64Range(0, 2000).Draw(t, "bytes"), Allowance: rapid.IntRange(0, 2000).Draw(t, "allowance"),
			Delivered: rapid.Int64Range(0, 2000).Draw(t, "delivered"),
			Usage: llm.Usage{
				InputTokens: count.Draw(t, "input"), CacheReadTokens: count.Draw(t, "read"), CacheWriteTokens: count.Draw(t, "write"),
				OutputTokens: count.Draw(t, "output"),
			},
		}
		model := llm.Model{ContextWindow: rapid.IntRange(1, 2000).Draw(t, "window")}
		most := float64(max(int64(model.ContextWindow), c.Input+overheadTokens)) * absurdFactor
		input := float64(c.Usage.InputTokens) + float64(c.Usage.CacheReadTokens) + float64(c.Usage.CacheWriteTokens)
		absurd := input > most || float64(c.Usage.OutputTokens) > float64(max(int64(model.ContextWindow), int64(c.Allowance), c.Delivered))*absurdFactor
		err := c.CheckUsage(model)
		if _, is := errors.AsType[*AbsurdUsageError](err); is != absurd || is != (err != nil) {
			t.Fatalf("%+v with a window of %d: %v", c, model.ContextWindow, err)
		}
	})
}
