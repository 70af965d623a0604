package control

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func TestFitLeavesWhatFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", answerBudget/2)
	results := map[thread.ID]Result{
		"long":  {Result: long, Outputs: map[string]any{"n": 1.5, "list": []any{"a"}}},
		"short": {Result: "done", Data: json.RawMessage(`{"a":1}`), Warnings: []string{"w"}},
	}
	want := fmt.Sprintf("%+v", results)
	fitResults(results)
	if got := fmt.Sprintf("%+v", results); got != want {
		t.Errorf("changed to %.200s", got)
	}
}

// TestFit holds whatever the texts are: the answer keeps its size, numbers and
// short texts stay as they are, and a cut text says so.
func TestFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string {
			return strings.Repeat("ö", rapid.SampledFrom([]int{0, 3, 300, 6_000}).Draw(t, label))
		}
		results := map[thread.ID]Result{}
		for i := range rapid.IntRange(1, 12).Draw(t, "threads") {
			r := Result{
				Result: text("result"), Error: text("error"), Warnings: []string{text("warning"), "last"},
				Outputs: map[string]any{"text": text("output"), "list": []any{text("item")}, "number": 7.0, "none": nil},
			}
			if rapid.Bool().Draw(t, "data") {
				r.Data = json.RawMessage(`"` + text("data") + `"`)
			}
			if r.Error != "" {
				r.Problem = &thread.Problem{Code: "c", Message: r.Error}
			}
			results[thread.NewID("d", testTime, i+1)] = r
		}
		before := make(map[thread.ID]Result, len(results))
		for id, r := range results {
			before[id] = r
		}
		fitResults(results)
		answer, err := json.Marshal(results)
		if err != nil {
			t.Fatal(err)
		}
		// What cannot be left out of a result: keys, notes of what is missing.
		if most := answerBudget + len(results)*1000; len(answer) > most {
			t.Errorf("%d results take %d bytes", len(results), len(answer))
		}
		for id, r := range results {
			whole := before[id]
			if !utf8.ValidString(r.Result) || r.Result != whole.Result && !strings.Contains(r.Result, "read_transcript") {
				t.Errorf("result cut to %q", r.Result)
			}
			if r.Outputs["number"] != 7.0 || r.Outputs["none"] != nil || len(r.Outputs) != len(whole.Outputs) {
				t.Errorf("outputs %v", r.Outputs)
			}
			if whole.Problem != nil && whole.Problem.Message != whole.Error {
				t.Error("the stored problem was changed")
			}
		}
	})
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sizes  []int
		budget int
		want   int
	}{
		{[]int{10, 10, 10}, 30, math.MaxInt}, // all fit
		{nil, 30, math.MaxInt},
		{[]int{5, 100, 100}, 105, 50},
		{[]int{100}, 30, 30},
		{[]int{90, 1, 80}, 30, 14},
	} {
		if got := share(tt.sizes, tt.budget); got != tt.want {
			t.Errorf("share(%v, %d) = %d, want %d", tt.sizes, tt.budget, got, tt.want)
		}
	}
}
