package handoff

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// toolCall is a call on record with its result.
type toolCall struct {
	tool, input, text string
	failed, open      bool
	images            []llm.Image
}

// recorded is a transcript with these calls.
func recorded(t *testing.T, calls ...toolCall) records.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	w, err := transcript.Open(records.File(path), "a-1", transcript.Options{Now: func() time.Time { return time.Unix(0, 0) }})
	must(t, err)
	for i, c := range calls {
		id := string(rune('a' + i))
		must(t, w.Append(thread.EventToolCallStart, transcript.ToolCallStart{CallID: id, Tool: c.tool, Input: transcript.Input(c.input)}))
		if !c.open {
			must(t, w.Append(thread.EventToolCallResult, transcript.ToolCallResult{
				CallID: id, Tool: c.tool, Text: c.text, IsError: c.failed, Images: c.images,
			}))
		}
	}
	must(t, w.Close())
	return records.File(path)
}

func TestFilesWritten(t *testing.T) {
	t.Parallel()
	const write, edit = "rye_file_system_write", "rye_file_system_edit_lines"
	execute := func(id, parameters, more string) toolCall {
		return toolCall{tool: "rye_execute", input: `{"item_type":"tool","item_id":"` + id + `","parameters":` + parameters + more + `}`}
	}
	for name, tt := range map[string]struct {
		calls []toolCall
		want  []string
	}{
		"written":         {[]toolCall{{tool: write, input: `{"path":"a.go","content":"x"}`}}, []string{"a.go"}},
		"several":         {[]toolCall{{tool: write, input: `{"files":[{"path":"./b/../a","content":""},{"path":"c","content":""}]}`}}, []string{"a", "c"}},
		"edited":          {[]toolCall{{tool: edit, input: `{"path":"a.go","changes":[]}`}}, []string{"a.go"}},
		"failed":          {[]toolCall{{tool: write, input: `{"path":"a.go"}`, failed: true}}, nil},
		"never answered":  {[]toolCall{{tool: write, input: `{"path":"a.go"}`, open: true}}, nil},
		"read":            {[]toolCall{{tool: "rye_file_system_read", input: `{"path":"a.go"}`}}, nil},
		"broken input":    {[]toolCall{{tool: write, input: `{"path":"a`}}, nil},
		"another form":    {[]toolCall{{tool: write, input: `{"path":7}`}, {tool: write, input: `"a"`}}, nil},
		"by the action":   {[]toolCall{execute("rye/file-system/write", `{"path":"a"}`, ""), execute("rye/file-system/edit_lines", `{"path":"b"}`, "")}, []string{"a", "b"}},
		"read by action":  {[]toolCall{execute("rye/file-system/read", `{"path":"a"}`, "")}, nil},
		"only tried":      {[]toolCall{execute("rye/file-system/write", `{"path":"a"}`, `,"dry_run":true`)}, nil},
		"once, when last": {[]toolCall{{tool: write, input: `{"path":"a"}`}, {tool: write, input: `{"path":"b"}`}, {tool: edit, input: `{"path":"a"}`}}, []string{"b", "a"}},
		"nothing":         {nil, nil},
	} {
		got, err := FactsOf(recorded(t, tt.calls...))
		if err != nil || !slices.Equal(got.Files, tt.want) {
			t.Errorf("%s: got %q, %v; want %q", name, got.Files, err, tt.want)
		}
	}
}

// TestFactsOfAChain: what the threads of a chain have made is put together,
// whatever became of their transcripts.
func TestFactsOfAChain(t *testing.T) {
	t.Parallel()
	shell, image := strings.Repeat("1", 64), strings.Repeat("2", 64)
	first := recorded(
		t,
		toolCall{tool: "rye_file_system_write", input: `{"path":"a"}`},
		toolCall{tool: "rye_bash", failed: true, text: "[shortened from 9 characters; the whole is artifact " + shell[:16] + ": read it with rye_read_artifact]"},
	)
	second := recorded(
		t,
		toolCall{tool: "rye_file_system_read", input: `{"path":"x.png"}`, images: []llm.Image{{MediaType: "image/png", Ref: image}}},
		toolCall{tool: "rye_file_system_write", input: `{"path":"b"}`},
	)
	f, err := os.OpenFile(string(second), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("no event\n{\"torn")
	must(t, err)
	must(t, f.Close())
	facts, err := FactsOf(first, records.File(filepath.Join(t.TempDir(), "gone.jsonl")), second)
	must(t, err)
	if !slices.Equal(facts.Files, []string{"a", "b"}) {
		t.Errorf("files %q", facts.Files)
	}
	for file, want := range map[string]Artifact{
		shell + ".txt":                   {Ref: shell[:16], Bytes: 5, Tool: "rye_bash"},
		image + ".png":                   {Ref: image[:16], Bytes: 5, Tool: "rye_file_system_read"},
		strings.Repeat("3", 64) + ".bin": {Ref: strings.Repeat("3", 16), Bytes: 5},
	} {
		if got := facts.Artifact(file, 5); got != want {
			t.Errorf("%s: got %+v, want %+v", file, got, want)
		}
	}
	if _, err := FactsOf(records.File(t.TempDir())); err == nil {
		t.Error("a folder was read as a transcript")
	}
}

// TestFactsOfWhatWasSaid: the successor of a thread that was steered is told what to
// follow, from whom, and no notes; however little room there is, the last of it first.
func TestFactsOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	w, err := transcript.Open(records.File(path), "work-1", transcript.Options{})
	must(t, err)
	for _, m := range []transcript.Message{
		{Kind: thread.Steer, From: thread.Sender{Kind: thread.ByPerson}, Blocks: llm.Text(llm.User, "The person says this.\n<message>\nUse Go.\nNot C.\n</message>").Blocks},
		{Kind: thread.Note, From: thread.Sender{Kind: thread.ByChild, Name: "child-1"}, Blocks: llm.Text(llm.User, "A note.\n<message>\nhello\n</message>").Blocks},
		{Kind: thread.Steer, From: thread.Sender{Kind: thread.ByParent, Name: "root-1"}, Blocks: llm.Text(llm.User, "Above.\n<message>\nHurry.\n</message>").Blocks},
	} {
		must(t, w.Append(thread.EventMessage, m))
	}
	must(t, w.Close())
	facts, err := FactsOf(records.File(path))
	must(t, err)
	text := Manifest{Thread: "work-1", Via: thread.ViaHandoff, Position: 2, Directive: "work", Said: facts.Said}.at(details()[0], 10_000)
	if want := "\n## Said while you worked, to be followed; the last counts\n- the person: Use Go. Not C.\n- root-1: Hurry.\n"; !strings.Contains(text, want) {
		t.Errorf("%s lacks %s", text, want)
	}
}
