package control

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// answerBudget bounds the texts in an answer, in bytes. MCP clients show their
// models between 12 000 and 50 000 characters of a result; the rest of a text
// is read with read_transcript.
const answerBudget = 24_000

// minShare is what every thread of an answer may use of it, however many there
// are.
const minShare = 200

// fitResults shortens the texts of an answer about many threads so that it
// stays within what clients show. Short ones are left whole and leave their
// room to the others.
func fitResults(results map[thread.ID]Result) {
	var sizes []int
	for _, r := range results {
		sizes = append(sizes, textSize(r))
	}
	most := max(share(sizes, answerBudget), minShare)
	for id, r := range results {
		if textSize(r) > most {
			results[id] = clipResult(r, most)
		}
	}
}

// share is the most that each may have so that all together have no more than
// the budget.
func share(sizes []int, budget int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if fair := budget / (len(sizes) - i); size > fair {
			return fair
		}
		budget -= size
	}
	return math.MaxInt
}

// textSize counts the bytes of a result that can be long.
func textSize(r Result) int {
	size := len(r.Result) + len(jsonText(r.Outputs)) + len(jsonText(r.Data)) + len(r.Error)
	if r.Problem != nil {
		size += len(r.Problem.Message)
	}
	for _, w := range r.Warnings {
		size += len(w)
	}
	return size
}

// clipResult shortens the texts of one result to about most bytes: each of them
// keeps what the others do not need.
func clipResult(r Result, most int) Result {
	sizes := []int{len(r.Result), len(jsonText(r.Outputs)), len(jsonText(r.Data)), len(r.Error), 0}
	if r.Problem != nil {
		sizes[4] = len(r.Problem.Message)
	}
	r.Warnings = clipWarnings(r.Warnings, most/4)
	most -= len(strings.Join(r.Warnings, ""))
	each := share(sizes, most)
	r.Result = clipText(r.Result, each)
	r.Outputs = clipOutputs(r.Outputs, each)
	if text := jsonText(r.Data); len(text) > each {
		r.Data = clipText(text, each)
	}
	r.Error = clipText(r.Error, each)
	if r.Problem != nil {
		problem := *r.Problem
		problem.Message = clipText(problem.Message, each)
		r.Problem = &problem
	}
	return r
}

func clipWarnings(warnings []string, most int) []string {
	for i, w := range warnings {
		if most -= len(w); most < 0 {
			return append(slices.Clone(warnings[:i]), fmt.Sprintf("… and %d more: read_transcript has them", len(warnings)-i))
		}
	}
	return warnings
}

// jsonText is a value as it stands in the answer; empty for none.
func jsonText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// clipOutputs shortens the text values of outputs.
func clipOutputs(outputs map[string]any, share int) map[string]any {
	if len(jsonText(outputs)) <= share {
		return outputs
	}
	clipped := make(map[string]any, len(outputs))
	for k, v := range outputs {
		switch v := v.(type) {
		case string:
			clipped[k] = clipText(v, share/len(outputs))
		case bool, float64, nil:
			clipped[k] = v
		default:
			text, err := json.Marshal(v)
			if err == nil && len(text) > share/len(outputs) {
				clipped[k] = clipText(string(text), share/len(outputs))
				continue
			}
			clipped[k] = v
		}
	}
	return clipped
}

// clipText cuts a text at a rune boundary and says how much is missing.
func clipText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… [%d more bytes: read_transcript has the whole text]", s[:cut], len(s)-cut)
}
