package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// person is who uses the program mcp: they give every question the same answer.
type person struct {
	answer string
	shown  io.Writer
}

// Elicit shows the question.
func (p person) Elicit(_ context.Context, q mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	_, _ = fmt.Fprintln(p.shown, "asked:", q.Params.Message)
	result := &mcp.ElicitationResult{}
	if result.Action = mcp.ElicitationResponseAction(p.answer); p.answer[0] != '{' {
		return result, nil // decline, or cancel
	}
	result.Action = mcp.ElicitationResponseActionAccept
	return result, json.Unmarshal([]byte(p.answer), &result.Content)
}

// asks ID waits until a thread waits to be told what to do.
func waitUntilAsked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: asks ID")
	}
	poll(ts.Fatalf, func() (bool, string) {
		err := ts.Exec("rye-mcp", "threads", "approve", args[0], "--json")
		return err == nil, fmt.Sprintf("%s does not ask: %v", args[0], err)
	})
}
