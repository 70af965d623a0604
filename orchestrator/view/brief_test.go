package view

import (
	"testing"
)

// A model is not told twice what a thread has returned.
func TestBrief(t *testing.T) {
	t.Parallel()
	outputs := map[string]any{"n": 3, "list": []string{"a"}}
	for said, want := range map[string]string{
		`{"list": ["a"], "n": 3}`:      "",
		`{"list":["a"],"n":4}`:         `{"list":["a"],"n":4}`,
		`{"list":["a"],"n":3,"x":1}`:   `{"list":["a"],"n":3,"x":1}`,
		`{"list":["a"],"n":3} and all`: `{"list":["a"],"n":3} and all`,
		`Done.`:                        `Done.`,
		``:                             ``,
	} {
		if got := (Started{End: End{Outputs: outputs, Result: said}}).Brief(); got.Result != want || len(got.Outputs) != 2 {
			t.Errorf("%q is told as %q", said, got.Result)
		}
	}
	if got := (Started{End: End{Result: `{}`}}).Brief(); got.Result != `{}` {
		t.Errorf("without outputs: %q", got.Result)
	}
}
