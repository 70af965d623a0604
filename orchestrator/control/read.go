package control

import (
	"context"
	"errors"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ReadTranscript returns a part of a thread's transcript. The cursor continues
// where the answer before ended, also while the thread still writes. A thread
// that has written nothing yet has an empty transcript.
func (c *Controller) ReadTranscript(ctx context.Context, in TranscriptInput) (TranscriptPage, error) {
	rec, err := c.examineAgain(ctx, in.ThreadID)
	if err != nil {
		return TranscriptPage{}, fault(err)
	}
	page, err := transcript.Tail(c.TranscriptPath(rec.ThreadID), transcript.TailOptions{
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
		return TranscriptPage{}, fault(err)
	}
	return TranscriptPage{
		Success: true, ThreadID: rec.ThreadID, Content: page.Content, NextCursor: page.Next, AtEnd: page.AtEnd,
	}, nil
}

// TranscriptPath is where a thread's transcript lies.
func (c *Controller) TranscriptPath(id thread.ID) string { return c.folder(id).Transcript() }
