package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestFailuresFitTheOutputSchema(t *testing.T) {
	t.Parallel()
	// servertest checks every result against the schema and the size limit.
	c := servertest.Start(t, newServer())
	for how, want := range map[string]tool.Code{
		"fault": tool.CodeNotFound, "mistyped": tool.CodeBadID, "huge": tool.CodeAmbiguous, "known": tool.CodeNoKey,
		"unknown": tool.CodeInternal, "timeout": tool.CodeTimeout, "panic": tool.CodeInternal, "nan": tool.CodeInternal,
		"long": "", "longest": "", "other": tool.CodeBadArguments,
	} {
		r := c.Call("fail", failIn{How: how})
		if r.Err != nil || r.Code() != want || r.IsError != (want != "") {
			t.Errorf("%s = %+v, want code %q", how, r, want)
		}
		if strings.Contains(string(r.JSON), "secret of the stack") || strings.Contains(string(r.JSON), "goroutine") {
			t.Errorf("%s shows what is for the log: %s", how, r.JSON)
		}
	}
}

// A long answer keeps its short members, and is no failure: it may have cost money.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, newServer())
	var long struct {
		ID, Data string
		Cut      struct {
			Whole int `json:"whole_bytes"`
			Texts int
		}
	}
	r := c.Call("fail", map[string]any{"how": "long"})
	if err := json.Unmarshal(r.JSON, &long); err != nil || r.IsError || long.ID != "abc" || long.Cut.Texts != 1 || long.Cut.Whole < 40_000 {
		t.Errorf("answered %.200s, %v", r.JSON, err)
	}
	for given, want := range map[any]int{500: 500, 5000: 5000, "20000": 20_000, 1_000_000: 1_000_000} {
		r := c.Call("fail", map[string]any{"how": "long", "max_bytes": given})
		if r.Err != nil || r.IsError || len(r.JSON) > want || len(r.JSON) < min(want, 40_000)/2 {
			t.Errorf("asked for %v: %d bytes, %v", given, len(r.JSON), r.Err)
		}
	}
	for _, given := range []any{499, 1_000_001, -1, 1.5, "many", []int{1}, true} {
		if r := c.Call("fail", map[string]any{"how": "long", "max_bytes": given}); r.Code() != tool.CodeBadArguments {
			t.Errorf("asked for %v: %.200s", given, r.JSON)
		}
	}
}
