package testrun

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// tailBytes is how much of the output a result shows.
const tailBytes = 12 << 10

// tail keeps the end of what is written to it and, where somebody keeps it, the
// whole.
type tail struct {
	last  []byte
	total int
	whole []byte
	keeps bool
}

func newTail(env tool.Env) *tail { return &tail{keeps: env.Artifacts != nil || env.Keeps} }

// Write takes all of p.
func (t *tail) Write(p []byte) (int, error) {
	t.total += len(p)
	if room := process.DefaultMaxOutput - len(t.whole); t.keeps && room > 0 {
		t.whole = append(t.whole, p[:min(room, len(p))]...)
	}
	t.last = append(t.last, p...)
	if len(t.last) > 4*tailBytes {
		t.last = append(t.last[:0], t.last[len(t.last)-2*tailBytes:]...)
	}
	return len(p), nil
}

// colours finds what terminals obey.
var colours = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\^_])`)
})

// text is the end of the output from the beginning of a line on, and how many bytes
// are before it.
func (t *tail) text() (text string, leftOut int) {
	end := t.last[max(0, len(t.last)-tailBytes):]
	if len(end) < t.total {
		if i := bytes.IndexByte(end, '\n'); i >= 0 && i < len(end)/2 {
			end = end[i+1:]
		}
	}
	return strings.ToValidUTF8(colours().ReplaceAllString(string(end), ""), "\ufffd"), t.total - len(end)
}

// attachment is the whole of which the result has the end only.
func (t *tail) attachment() *tool.Attachment {
	if _, leftOut := t.text(); leftOut == 0 || !t.keeps {
		return nil
	}
	return &tool.Attachment{Name: "output", MediaType: "text/plain; charset=utf-8", Data: t.whole}
}
