package git

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// recordMark begins each record of a command that prints records. No text that git
// prints holds it.
const recordMark = "%x00"

// parameter is the one of a command that says where a page begins.
type parameter string

const (
	byOffset    parameter = "offset"     // the first line that is shown of what git prints
	byFirstLine parameter = "first_line" // the first line that git prints
	bySkip      parameter = "skip"       // records that git leaves out
)

// pager keeps the lines of one page, or its records, and stops git when it has them.
type pager struct {
	by      parameter
	first   int // line
	most    int // JSON of its lines
	without func(string) bool
	stop    func()

	partial []byte
	length  int // of the line that partial is the beginning of
	lines   int // seen
	records int // seen
	record  int // where the last of them begins in content
	content strings.Builder
	room    int // used, in JSON
	full    bool
	dropped int
}

func newPager(c call, stop func()) *pager {
	p := &pager{by: cmp.Or(c.by, byOffset), most: c.env.Page(pageBytes), without: c.without, stop: stop, first: c.offset}
	if p.by == bySkip {
		p.records = c.before
	} else {
		p.lines = c.before
	}
	return p
}

// Write takes all of data.
func (p *pager) Write(data []byte) (int, error) {
	n := len(data)
	for len(data) > 0 && !p.full {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			p.keep(data)
			break
		}
		p.keep(data[:i])
		p.line()
		data = data[i+1:]
	}
	return n, nil
}

// keep takes a part of a line, of which no more is kept than tells whether it holds
// a signature.
func (p *pager) keep(part []byte) {
	const most = 64 << 10
	p.length += len(part)
	p.partial = append(p.partial, part[:min(len(part), most-min(most, len(p.partial)))]...)
}

func (p *pager) line() {
	p.lines++
	text, length := p.partial, p.length
	p.partial, p.length = p.partial[:0], 0
	if p.lines < p.first {
		return
	}
	if p.by == bySkip && bytes.HasPrefix(text, []byte{0}) {
		p.record = p.content.Len()
		p.records++
		text, length = text[1:], length-1
	}
	if sign.Holds(text) || p.without != nil && p.without(string(text)) {
		p.dropped++
		return
	}
	l := gitrepo.ShownStart(string(text), length) + "\n"
	if p.room += tool.SizeInJSON(l); p.room > p.most && p.content.Len() > 0 {
		p.full = true
		p.lines--
		p.stop()
		return
	}
	p.content.WriteString(l)
}

// end takes a last line without an end.
func (p *pager) end() {
	if len(p.partial) > 0 {
		p.line()
	}
}

// page is what was kept. Its note names the parameter of the next call.
func (p *pager) page() *output {
	o := &output{Content: p.content.String()}
	var notes []string
	switch {
	case !p.full:
	case p.by != bySkip:
		o.NextOffset = p.lines + 1
		notes = append(notes, p.goOn(o.NextOffset))
	case p.record > 0: // the last record is left to the next page
		o.Content = o.Content[:p.record]
		o.NextSkip = p.records - 1
		notes = append(notes, p.goOn(o.NextSkip))
	default:
		o.NextSkip = p.records
		notes = append(notes, "this commit is cut: rye/git/show with stat true shows it in pages", p.goOn(o.NextSkip))
	}
	if p.dropped > 0 {
		notes = append(notes, "lines with signatures are not shown")
	}
	o.Note = strings.Join(notes, "; ")
	return o
}

func (p *pager) goOn(at int) string { return fmt.Sprintf("there is more; go on with %s %d", p.by, at) }
