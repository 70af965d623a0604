package view

import (
	"encoding/json"
	"reflect"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Brief is an answer for a model: a final text that says what the outputs say again is
// left out. The text of a thread that has returned outputs is their JSON.
func (s Started) Brief() Started {
	s.End = s.End.Brief()
	return s
}

// BriefResults are results for a model, see [Started.Brief].
func BriefResults(results map[thread.ID]Result) map[thread.ID]Result {
	for id, r := range results {
		r.End = r.Brief()
		results[id] = r
	}
	return results
}

// Brief is the end of a thread for a model, see [Started.Brief].
func (e End) Brief() End {
	if len(e.Outputs) == 0 || len(e.Result) == 0 || e.Result[0] != '{' {
		return e
	}
	raw, err := json.Marshal(e.Outputs)
	if err != nil {
		return e
	}
	var outputs, said map[string]any
	if json.Unmarshal(raw, &outputs) == nil && json.Unmarshal([]byte(e.Result), &said) == nil && reflect.DeepEqual(outputs, said) {
		e.Result = ""
	}
	return e
}
