package main_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

const forkedProject = `
-- .ai/directives/look.md --
` + "```xml" + `
<directive name="look" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <context><system>about</system></context>
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Look around.
-- .ai/knowledge/about.md --
---
title: About
---
This is a project.
-- a.txt --
one <two> & "three"
-- model.yaml --
turns:
  - match: {last: another way}
    text: I have gone another way.
  - match: {first: Look around, turn: 1}
    text: I look. — ☂
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}, {name: rye_file_system_read, input: {path: a.txt}}]
  - match: {first: Look around, turn: 2}
    tool_calls: [{name: rye_file_system_read, input: {path: b.txt}}]
  - match: {first: Look around, turn: 3}
    text: I have seen all.
`

// asked is what a request to Anthropic has before the newest words: the system prompt
// and each block of each message, byte for byte but for the marks of what is cached.
func asked(t *testing.T, r scripted.Recorded) (system string, blocks []string) {
	t.Helper()
	var request struct {
		System   json.RawMessage
		Messages []struct {
			Role    string
			Content []json.RawMessage
		}
	}
	if err := json.Unmarshal(r.Body, &request); err != nil {
		t.Fatal(err)
	}
	marks := regexp.MustCompile(`,?"cache_control":\{[^}]*\},?`)
	for _, m := range request.Messages {
		for _, block := range m.Content {
			blocks = append(blocks, m.Role+" "+marks.ReplaceAllString(string(block), ""))
		}
	}
	return string(request.System), blocks
}

// TestForkAsksTheSame: the first request of a copy is, byte for byte, that of its source
// after the same turn, and the message.
func TestForkAsksTheSame(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	r := newRecorded(t, forkedProject)
	requests := r.run("look", nil)
	if len(requests) != 3 {
		t.Fatalf("the thread asked %d times", len(requests))
	}
	source := must[view.List](r.host, "list_threads", nil).Threads[0].ThreadID
	for turn, want := range requests[1:] {
		forked := must[continuation.Forked](r.host, "fork_thread", args{"thread_id": source, "at_turn": turn + 1, "message": "go another way"})
		if w := must[view.WaitResult](r.host, "wait_threads", args{"thread_ids": forked.ThreadID}); !w.Success {
			t.Fatalf("waited for %+v", w)
		}
		all := r.server.Requests()
		system, blocks := asked(t, all[len(all)-1])
		wantSystem, wantBlocks := asked(t, want)
		wantBlocks = append(wantBlocks, `user {"text":"go another way","type":"text"}`)
		if system != wantSystem || !slices.Equal(blocks, wantBlocks) {
			t.Errorf("after turn %d the copy asked\n%s\n%q\nand not\n%s\n%q", turn+1, system, blocks, wantSystem, wantBlocks)
		}
	}
	// One that has rested asks the same when it is resumed.
	rests := must[continuation.Forked](r.host, "fork_thread", args{"id": source, "at_turn": "1"})
	resumed := must[continuation.Resumed](r.host, "resume_thread", args{"thread_id": rests.ThreadID, "message": "go another way"})
	must[view.WaitResult](r.host, "wait_threads", args{"thread_ids": resumed.NewThreadID})
	all := r.server.Requests()
	_, blocks := asked(t, all[len(all)-1])
	_, wantBlocks := asked(t, requests[1])
	if !slices.Equal(blocks[:len(blocks)-1], wantBlocks) {
		t.Errorf("resumed it asked\n%q\nand not\n%q", blocks, wantBlocks)
	}
}
