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
		"long": tool.CodeInternal, "longest": "", "other": tool.CodeBadArguments,
	} {
		r := c.Call("fail", failIn{How: how})
		if r.Err != nil || r.Code() != want || r.IsError != (want != "") {
			t.Errorf("%s = %+v, want code %q", how, r, want)
		}
		if strings.Contains(string(r.JSON), "secret of the stack") || strings.Contains(string(r.JSON), "goroutine") {
			t.Errorf("%s shows what is for the log: %s", how, r.JSON)
		}
	}
	var long struct {
		Kept map[string]json.RawMessage `json:"partial_result"`
	}
	if err := json.Unmarshal(c.Call("fail", failIn{How: "long"}).JSON, &long); err != nil || string(long.Kept["id"]) != `"abc"` {
		t.Errorf("short members of a long result are lost: %v, %v", long, err)
	}
}
