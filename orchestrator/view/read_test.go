package view

import (
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// All of what a thread has returned is read part by part, to the byte.
func TestReadParts(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ä\"日\n\x01😀", 4000)
	rec := thread.Record{ThreadID: "greet-1", Status: thread.Completed, Outcome: &thread.Outcome{
		State: thread.Completed, Result: text, Outputs: map[string]any{"long": text, "n": 1.0},
	}}
	for part, want := range map[string]string{tool.PartResult: text, tool.PartOutputs: jsonText(rec.Outcome.Outputs)} {
		for _, room := range []int{500, 0, 1_000_000} {
			var got strings.Builder
			in := TranscriptInput{ThreadID: rec.ThreadID, Part: part, MaxBytes: room}
			for pages := 0; ; pages++ {
				page, err := partPage(rec, in)
				s := tool.SizeInJSON(page.Content)
				if err != nil || page.TotalBytes != len(want) || room > 0 && s > room || page.Content == "" || pages > 1000 {
					t.Fatalf("%s: %d bytes, %v", part, s, err)
				}
				got.WriteString(page.Content)
				if in.Cursor = page.NextCursor; page.AtEnd {
					break
				}
			}
			if got.String() != want {
				t.Errorf("%s in pages of %d: %d bytes of %d", part, room, got.Len(), len(want))
			}
		}
	}
	for _, cursor := range []string{"-1", "x", "9999999999"} {
		if _, err := partPage(rec, TranscriptInput{Part: tool.PartResult, Cursor: cursor}); !refused(err) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
	rec.Outcome = &thread.Outcome{State: thread.Completed, Data: []byte(`{"a":1}`)}
	if page, err := partPage(rec, TranscriptInput{Part: tool.PartResult}); err != nil || page.Content != `{"a":1}` {
		t.Errorf("data: %+v, %v", page, err)
	}
	rec.Outcome, rec.Status = nil, thread.Running
	if page, err := partPage(rec, TranscriptInput{Part: tool.PartResult}); err != nil || page.Content != "" || page.AtEnd {
		t.Errorf("running: %+v, %v", page, err)
	}
}

func refused(err error) bool {
	f, ok := errors.AsType[*tool.Fault](err)
	return ok && f.Code == tool.CodeBadArguments
}
