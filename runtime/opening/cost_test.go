package opening_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// request is a first request with a body of some length.
func request(body int) prompt.Input {
	return prompt.Input{
		Directive: &item.DirectiveDoc{Name: "x", Body: strings.Repeat("b", body)},
		Context:   prompt.Blocks{System: []string{strings.Repeat("s", 400)}, Before: []string{strings.Repeat("k", 796)}},
	}
}

var tools = []llm.Tool{{Name: strings.Repeat("n", 40), Description: strings.Repeat("d", 160), Schema: json.RawMessage(strings.Repeat(" ", 200))}}

func TestEstimate(t *testing.T) {
	t.Parallel()
	c := opening.Estimate(request(4000), tools, config.ToolUseNative)
	if c.System != 100 || c.Context != 200 || c.Tools != 100 || c.Message < 1000 || c.Message > 1030 || c.Tokens != c.System+c.Context+c.Tools+c.Message {
		t.Errorf("%+v", c)
	}
	if inText := opening.Estimate(request(4000), tools, config.ToolUseText); inText.Tools <= c.Tools {
		t.Errorf("tools in text take their explanation too: %+v", inText)
	}
	if none := opening.Estimate(request(0), nil, config.ToolUseText); none.Tools != 0 {
		t.Errorf("no tools: %+v", none)
	}
}

// The parts of an estimate are those of the request, whatever it is made of: never
// more than a token apart for each.
func TestEstimateIsTheRequest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 300, -1)
		in := prompt.Input{
			Directive: &item.DirectiveDoc{Name: text.Draw(t, "name"), Body: text.Draw(t, "body"), Description: text.Draw(t, "description")},
			Context: prompt.Blocks{
				System: rapid.SliceOf(text).Draw(t, "system"), Before: rapid.SliceOf(text).Draw(t, "before"), After: rapid.SliceOf(text).Draw(t, "after"),
			},
		}
		system, user := prompt.Build(in)
		c := opening.Estimate(in, nil, config.ToolUseNative)
		whole := int64(len([]rune(system))+len([]rune(user))) / 4
		if c.Tokens < whole || c.Tokens > whole+4 || c.Context < 0 {
			t.Fatalf("%+v, the request has %d", c, whole)
		}
	})
}

func TestShortages(t *testing.T) {
	t.Parallel()
	rich := thread.Limits{Tokens: 100_000, Spend: 1_000_000}
	priced := func(window int) *provider.Choice {
		return &provider.Choice{Provider: "p", Model: llm.Model{
			ID: "m", ContextWindow: window, MaxOutputTokens: 1000, Priced: true, Price: llm.Price{Input: 1_000_000, Output: 2_000_000},
		}}
	}
	for name, c := range map[string]struct {
		limits thread.Limits
		choice *provider.Choice
		want   string // codes
		words  string // of the advice
	}{
		"all pay":                       {rich, priced(200_000), "", ""},
		"no model is known":             {rich, nil, "", ""},
		"tokens":                        {thread.Limits{Tokens: 1600, Spend: 1_000_000}, priced(200_000), limit.TokensExceeded, "shorten its body"},
		"tokens, and no model":          {thread.Limits{Tokens: 1600}, nil, limit.TokensExceeded, "allow at least"},
		"tokens for two turns of five":  {thread.Limits{Turns: 5, Tokens: 2100}, nil, limit.TokensExceeded, "ends the thread in turn 2 of 5 at the latest"},
		"tokens for two turns of two":   {thread.Limits{Turns: 2, Tokens: 2100}, nil, "", ""},
		"tokens for many of more":       {thread.Limits{Turns: 50, Tokens: 20_000}, nil, "", ""},
		"none at all is told elsewhere": {thread.Limits{Spend: 1_000_000}, priced(200_000), "", ""},
		"money":                         {thread.Limits{Tokens: 100_000, Spend: 10}, priced(200_000), limit.SpendExceeded, "cheaper model"},
		"window":                        {rich, priced(1700), "window", "larger context window"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var codes, said []string
			for _, s := range opening.Estimate(request(4000), tools, config.ToolUseNative).Shortages(c.limits, c.choice) {
				code := s.Code
				if code == "" {
					code = "window"
				}
				codes, said = append(codes, code), append(said, s.Message+": "+s.Try)
			}
			if got := strings.Join(codes, " "); got != c.want || !strings.Contains(strings.Join(said, "\n"), c.words) {
				t.Errorf("got %q: %s", got, said)
			}
		})
	}
}

// TestAttackHiddenCost: a directive fills its prompt with characters that take three bytes each, so that an estimate by characters is too low. Whether the money pays is judged by bytes, as before every call, and the start is warned of.
func TestAttackHiddenCost(t *testing.T) {
	t.Parallel()
	in := request(0)
	in.Directive.Body = strings.Repeat("字", 4000)
	choice := &provider.Choice{Provider: "p", Model: llm.Model{
		ID: "m", ContextWindow: 200_000, MaxOutputTokens: 1000, Priced: true, Price: llm.Price{Input: 1_000_000, Output: 1_000_000},
	}}
	short := opening.Estimate(in, nil, config.ToolUseNative).Shortages(thread.Limits{Tokens: 100_000, Spend: 12_000}, choice)
	if len(short) != 1 || short[0].Code != limit.SpendExceeded {
		t.Errorf("%+v", short)
	}
}
