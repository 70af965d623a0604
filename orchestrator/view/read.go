package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TranscriptInput is the input of read_transcript.
type TranscriptInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread,thread_ids"`
	Part     string    `json:"part,omitempty" enum:"transcript,result,outputs" default:"transcript"`
	Format   string    `json:"format,omitempty" enum:"text,jsonl" default:"text"`
	Tail     int       `json:"tail,omitempty" minimum:"0" maximum:"1000" jsonschema:"last events"`
	Cursor   string    `json:"cursor,omitempty" alias:"offset,next_cursor"`
	MaxBytes int       `json:"max_bytes,omitempty" minimum:"500" maximum:"1000000" default:"10000"`
}

// TranscriptPage is the answer to read_transcript.
type TranscriptPage struct {
	Success       bool      `json:"success"`
	ThreadID      thread.ID `json:"thread_id"`
	Part          string    `json:"part,omitempty"`
	AtEnd         bool      `json:"at_end" jsonschema:"nothing more is written yet"`
	NextCursor    string    `json:"next_cursor,omitempty" jsonschema:"give it back to read on; also while the thread still writes"`
	EarlierCursor string    `json:"earlier_cursor,omitempty" jsonschema:"reads events of the tail that had no room"`
	TotalBytes    int       `json:"total_bytes,omitempty" jsonschema:"of all of the part"`
	Content       string    `json:"content" jsonschema:"readable text, or JSON lines with format jsonl"`
}

// Paged is true: content is a page of the length that was asked for.
func (TranscriptPage) Paged() bool { return true }

// ReadTranscript returns a part of a thread's transcript. The cursor continues
// where the answer before ended, also while the thread still writes. A thread
// that has written nothing yet has an empty transcript.
func (v *View) ReadTranscript(ctx context.Context, in TranscriptInput) (TranscriptPage, error) {
	rec, err := v.Threads.Examine(ctx, in.ThreadID)
	if errors.Is(err, thread.ErrNotFound) {
		err = v.Threads.NoThread(ctx, in.ThreadID)
	}
	if err != nil {
		return TranscriptPage{}, threads.Fault(err)
	}
	if in.Part != "" && in.Part != tool.PartTranscript {
		return partPage(rec, in)
	}
	page, err := transcript.Tail(v.Threads.Transcript(rec.ThreadID), transcript.TailOptions{
		Cursor: in.Cursor, Last: in.Tail, MaxBytes: in.MaxBytes, Text: in.Format != "jsonl",
	})
	if errors.Is(err, fs.ErrNotExist) {
		page, err = transcript.Page{AtEnd: true}, nil
	}
	if errors.Is(err, transcript.ErrBadCursor) {
		return TranscriptPage{}, tool.Faultf(tool.CodeBadArguments, "%w", err).
			WithHint("give back next_cursor of an answer about the same thread, or leave cursor out")
	}
	if err != nil {
		return TranscriptPage{}, threads.Fault(err)
	}
	return TranscriptPage{
		Success: true, ThreadID: rec.ThreadID, Content: page.Content, NextCursor: page.Next, AtEnd: page.AtEnd,
		EarlierCursor: page.Earlier,
	}, nil
}

// partPage is a page of what a thread has returned; its cursor counts bytes. One
// that has not ended has returned nothing yet.
func partPage(rec thread.Record, in TranscriptInput) (TranscriptPage, error) {
	text := partOf(rec.Outcome, in.Part)
	from := 0
	if in.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(in.Cursor); err != nil || from < 0 || from > len(text) {
			return TranscriptPage{}, tool.Faultf(tool.CodeBadArguments, "%w: %.40q", transcript.ErrBadCursor, in.Cursor).
				WithHint("give back next_cursor of an answer about the same part, or leave cursor out")
		}
	}
	from = item.Start(text, from)
	content := text[from:]
	content = content[:tool.FitsJSON(content, cmp.Or(in.MaxBytes, transcript.DefaultPageBytes))]
	page := TranscriptPage{
		Success: true, ThreadID: rec.ThreadID, Part: in.Part, TotalBytes: len(text), Content: content,
		AtEnd: from+len(content) == len(text) && rec.Status.Terminal(),
	}
	if next := from + len(content); next < len(text) {
		page.NextCursor = strconv.Itoa(next)
	}
	return page, nil
}

// partOf is a part of what a thread has returned, as text.
func partOf(o *thread.Outcome, part string) string {
	switch {
	case o == nil:
		return ""
	case part == tool.PartOutputs && len(o.Outputs) == 0:
		return ""
	case part == tool.PartOutputs:
		return jsonText(o.Outputs)
	case o.Result != "" || len(o.Data) == 0:
		return o.Result
	}
	var text string
	if json.Unmarshal(o.Data, &text) == nil {
		return text
	}
	return string(o.Data)
}

// jsonText is v as JSON without the escapes that only HTML needs.
func jsonText(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("[cannot be written as JSON: %v]", err)
	}
	return strings.TrimSpace(b.String())
}
