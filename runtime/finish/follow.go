package finish

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Follow keeps the rendering of a running thread up with its transcript: from now on
// what is written to w is appended to the knowledge entry, which is not signed before
// [Finisher.Finish] writes it anew. Stop closes the file. The caller holds the thread's
// life lock.
func (f *Finisher) Follow(rec thread.Record, w *transcript.Writer) (stop func() error, err error) {
	if f.KnowledgeDir == "" {
		return func() error { return nil }, nil
	}
	front, err := f.renderingOf(rec).text()
	if err != nil {
		return nil, err
	}
	ai, err := os.OpenRoot(filepath.Dir(f.KnowledgeDir)) // no link leads out of it
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ai.Close()) }()
	name := path.Join(filepath.Base(f.KnowledgeDir), RenderingID(rec)+".md")
	if err := ai.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	// It is opened under a name of its own and then moved: what stands at its place
	// may be somebody's link.
	draft := draftOf(name)
	file, err := openDraft(ai, draft)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(front)
	if err == nil {
		err = w.Follow(&bounded{out: file, left: maxRendering})
	}
	if err == nil {
		err = ai.Rename(draft, name)
	}
	if err != nil {
		return nil, errors.Join(err, w.Unfollow(), file.Close(), ai.Remove(draft))
	}
	return func() error { return errors.Join(w.Unfollow(), file.Close()) }, nil
}

// bounded writes so many bytes and then says where the rest is.
type bounded struct {
	out  io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left < 0 {
		return len(p), nil
	}
	if b.left -= len(p); b.left >= 0 {
		return b.out.Write(p)
	}
	_, err := fmt.Fprint(b.out, "\n\n[the rest is in the transcript]\n")
	return len(p), err
}
