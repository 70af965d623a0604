package action

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestPermits: what is said of a call without making it is what the action says.
func TestPermits(t *testing.T) {
	t.Parallel()
	calls := map[string][]string{
		"rye_execute": {
			`{"item_type": "directive", "item_id": "test/hello"}`, `{"item_id": "test/hello"}`, `{"type": "tool", "id": "rye/file-system/ls"}`,
			`{"item_id": "no/such"}`, `{"item_type": "tool", "item_id": "no/such"}`, `{"item_id": "../no"}`, `{"item_id": 5}`, `{}`,
			`{"item_type": "knowledge", "item_id": "test/facts", "project_path": "/elsewhere"}`, `{"item_type": "knowledge", "item_id": "test/facts", "more": 1}`,
			`{"item_id": "rye/agent/threads/orchestrator", "parameters": {"operation": "get_status"}}`,
			`{"item_id": "rye/agent/threads/thread_directive", "parameters": {"directive_id": "test/hello"}}`,
			`{"item_id": "rye/agent/threads/thread_directive", "parameters": {"more": 1}}`,
			`{"item_id": "rye/agent/threads/directive_return"}`, `{"item_type": "tool", "item_id": "rye/agent/threads/thread_summary"}`,
			`{"resume_thread_id": "hello-1", "parameters": {"message": "go on"}}`,
		},
		"rye_fetch": {
			`{"item_type": "knowledge", "item_id": "test/facts"}`, `{"item_id": "test/facts"}`, `{"item_id": "test/facts", "source": "user"}`,
			`{"query": "facts"}`, `{"query": "facts", "item_type": "knowledge"}`, `{"query": "facts", "item_id": "test/facts"}`, `{}`,
		},
		"rye_search": {`{"query": "facts"}`, `{"query": "facts", "scope": "knowledge"}`, `{"query": "facts", "scope": "tool.rye.*"}`, `{"query": "facts", "project_path": "/elsewhere"}`},
		"rye_sign":   {`{"item_type": "directive", "item_id": "test/hello"}`, `{"item_id": "test/hello"}`, `{"item_id": "test/*"}`, `{"item_id": "./no.md"}`, `{}`},
	}
	held := [][]string{
		nil, {"rye.execute.tool.rye.agent.threads.thread_directive"}, {"rye.execute.tool.rye.agent.threads.orchestrator"},
		{"rye.execute.directive.test.hello", "rye.execute.tool.no.such"}, {"rye.execute.tool.test.hello", "rye.execute.tool.rye.file-system.ls"},
		{"rye.search.knowledge.*", "rye.search.knowledge.**", "rye.fetch.directive.test.facts"},
		{"rye.fetch.knowledge.test.facts", "rye.sign.directive.test.hello"}, {"rye.search.knowledge.test.facts", "rye.sign.tool.test.hello"},
	}
	h := newHouse(t)
	for _, capabilities := range held {
		c := h.holder(capabilities...)
		for name, list := range calls {
			primary, _ := h.Tool(c, name)
			for _, args := range list {
				_, err := primary.Call(t.Context(), c.Env, json.RawMessage(args))
				said, foretold := deniedBy(err), deniedBy(Permits(c, h.Resolver, name, json.RawMessage(args)))
				if said != foretold {
					t.Errorf("%s %s with %s: the action says %q, foretold is %q", name, args, strings.Join(capabilities, " "), said, foretold)
				}
			}
		}
	}
}

// deniedBy is the capability for lack of which a call is refused; empty where it is not.
func deniedBy(err error) string {
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodePermissionDenied {
		missing, _ := f.Details["missing_capability"].(string)
		return missing
	}
	return ""
}
