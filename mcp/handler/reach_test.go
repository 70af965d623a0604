package handler

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// A client that is offered some tools is told how it reaches the operations that have
// none there, and is told of no tools that it is not offered.
func TestReachWithoutTools(t *testing.T) {
	t.Parallel()
	s := server.New(server.Options{Version: "test", MapError: action.Fault, OutputSchemas: true})
	Register(s, oneProject{only: newFolder(t, nil)}, []Group{Core}, operation.All())
	server.Add(s, server.Tool[struct{}, executeOutput]{
		Name: "rye_app_look", Description: "Look.", Annotations: server.Annotations{Title: "Look"}, Meta: server.AppOnly("ui://rye/board"),
		Handle: func(context.Context, server.Call, struct{}) (executeOutput, error) { return executeOutput{}, nil },
	})
	s.OfferApp("ui://rye/board")
	c := servertest.Start(t, s)
	raw, refused := c.Request("initialize", map[string]any{"protocolVersion": servertest.Protocol})
	var about struct{ Instructions string }
	if refused != nil || json.Unmarshal(raw, &about) != nil || !strings.Contains(about.Instructions, action.OrchestratorID) || len(strings.Fields(about.Instructions)) > 200 {
		t.Errorf("%d words of instructions: %s", len(strings.Fields(about.Instructions)), about.Instructions)
	}
	for name, want := range map[string]string{
		"get_status":   `call rye_execute {"item_id":"rye/agent/threads/orchestrator","parameters":{"operation":"get_status","thread_id":"a-1"},"project_path":"/p"}`,
		"rye_exeute":   "did you mean rye_execute?; the tools are: rye_execute, rye_fetch, rye_search, rye_sign",
		"rye_app_loop": "the tools are: rye_execute, rye_fetch, rye_search, rye_sign",
	} {
		_, refused := c.Request("tools/call", map[string]any{"name": name, "arguments": map[string]any{"thread_id": "a-1", "project_path": "/p"}})
		if refused == nil || !strings.HasSuffix(refused.Message, want) || strings.Contains(refused.Message, "rye_app_look") {
			t.Errorf("%s: %v, want %s", name, refused, want)
		}
	}
	if r := c.Call("rye_execute", map[string]any{"item_id": "wait_threads"}); r.Code() != "not_found" || !strings.Contains(string(r.JSON), `"nearest_ids":["rye/agent/threads/orchestrator"]`) {
		t.Errorf("an operation as an item: %s", r.JSON)
	}
	status := c.Call("rye_execute", map[string]any{
		"item_id": action.OrchestratorID, "parameters": map[string]any{"operation": "get_status", "thread_id": "no/such-1"},
	})
	if want := `list_threads is called as rye_execute {\"item_id\":\"rye/agent/threads/orchestrator\",\"parameters\":{\"operation\":\"list_threads\"}}`; !strings.Contains(string(status.JSON), want) {
		t.Errorf("the next step of an operation: %s, want %s", status.JSON, want)
	}
}
