package shell

import (
	"fmt"

	"github.com/rye-mcp/rye-mcp/tools/guard"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// sniffBytes is how much of a stream tells whether it is text.
	sniffBytes = 8 << 10
	// maxWhole is how much of a stream is kept beside the excerpt of it.
	maxWhole = process.DefaultMaxOutput
)

// stream is what a command writes: an excerpt for the result and, where somebody
// keeps it, the whole.
type stream struct {
	excerpt
	keep  int    // bytes of whole, at most
	whole []byte // the first bytes as they were written
	total int    // bytes written
}

// newStream returns one that keeps the whole only where there is a place for it, as
// in a thread.
func newStream(env tool.Env) *stream {
	s := &stream{keep: sniffBytes}
	if env.Artifacts != nil || env.Keeps {
		s.keep = maxWhole
	}
	return s
}

// Write takes all of p.
func (s *stream) Write(p []byte) (int, error) {
	s.total += len(p)
	if room := s.keep - len(s.whole); room > 0 {
		s.whole = append(s.whole, p[:min(room, len(p))]...)
	}
	return s.excerpt.Write(p)
}

func (s *stream) binary() bool { return guard.IsBinary(s.whole[:min(len(s.whole), sniffBytes)]) }

// String ends the writing and returns the text of the result.
func (s *stream) String() string {
	if s.binary() {
		return guard.BinaryOf(s.total, guard.MediaType(s.whole))
	}
	return s.excerpt.String()
}

// attachment is the whole of a stream of which the result has a part only.
func (s *stream) attachment(name string) (a tool.Attachment, ok bool) {
	if s.keep != maxWhole || !s.binary() && !s.Cut() {
		return a, false
	}
	if s.total > len(s.whole) {
		name = fmt.Sprintf("the first %d of %d bytes of %s", len(s.whole), s.total, name)
	}
	return tool.Attachment{Name: name, MediaType: guard.MediaType(s.whole), Data: s.whole}, true
}

// withStreams is an output with the streams of which it shows a part.
type withStreams struct {
	output
	attachments []tool.Attachment
}

// Attachments implements [tool.Attacher].
func (w withStreams) Attachments() []tool.Attachment { return w.attachments }

// attaching is the result with what is too long for it, or no text.
func (o output) attaching(stdout, stderr *stream) any {
	w := withStreams{output: o}
	if a, ok := stdout.attachment("stdout"); ok {
		w.attachments = append(w.attachments, a)
	}
	if a, ok := stderr.attachment("stderr"); ok {
		w.attachments = append(w.attachments, a)
	}
	if len(w.attachments) == 0 {
		return o
	}
	return w
}
