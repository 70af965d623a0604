package control

import (
	"encoding/json"
	"fmt"
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
// stays within what clients show.
func fitResults(results map[thread.ID]Result) {
	if len(results) == 0 {
		return
	}
	share := max(answerBudget/len(results), minShare)
	for id, r := range results {
		r.Result = clipText(r.Result, share)
		r.Outputs = clipOutputs(r.Outputs, share)
		if data, ok := r.Data.(json.RawMessage); ok && len(data) > share {
			r.Data = clipText(string(data), share)
		}
		results[id] = r
	}
}

// clipOutputs shortens the text values of outputs.
func clipOutputs(outputs map[string]any, share int) map[string]any {
	if len(outputs) == 0 {
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
