package parse

import "strings"

// block is the fenced xml block of a directive.
type block struct {
	src    *source
	text   string // between the fences
	masked string // text with the content of opaque elements blanked, offset by offset
	line   int    // of the first line of text in the file
	before string // what stands above the opening fence
	after  string // what stands below the closing fence
}

// findBlock finds the first xml block that is not itself inside another fence.
// Fences of three backticks do not hide one: prose in front of a directive may
// hold any number of them, closed or not.
func findBlock(src *source) (*block, error) {
	var outer string // the fence we are in, empty outside
	line, outerLine, almost := 0, 0, 0
	for offset := 0; offset < len(src.text); {
		text, _ := cutLine(src.text[offset:])
		line++
		next := min(offset+len(text)+1, len(src.text))
		switch {
		case outer != "":
			if closesFence(text, outer) {
				outer = ""
			}
		case isXMLFence(text):
			return readBlock(src, offset, next, line+1)
		case almost == 0 && isAlmostXMLFence(text):
			almost = line
			outer, outerLine = opensOuterFence(text), line
		default:
			outer, outerLine = opensOuterFence(text), line
		}
		offset = next
	}
	if almost > 0 {
		return nil, src.errorf(almost, "a directive begins with ```xml at the beginning of a line: three backticks, and nothing before them")
	}
	if outer != "" {
		return nil, src.errorf(outerLine, "this %s fence is never closed, so no ```xml block was found", outer)
	}
	if keys := frontMatterKeys(src.text); len(keys) > 0 {
		return nil, src.errorf(keys[0].line, "front matter is not read here, and no ```xml block with a <directive> was found: a directive says there what it may do (rye/core/directives). "+
			"An agent or command of Claude Code is one as it is, in .claude/agents or .claude/commands")
	}
	return nil, src.errorf(max(line, 1), "no ```xml block with a <directive> was found")
}

// readBlock reads the block whose first line starts at offset start.
func readBlock(src *source, fence, start, line int) (*block, error) {
	scan := opaqueScan{text: src.text}
	end := scan.run(start)
	if end < 0 {
		if scan.state == inOpaque {
			return nil, src.errorf(lineAt(src.text, scan.from), "<%s> is never closed", scan.tag)
		}
		return nil, src.errorf(line-1, "the ```xml block is never closed")
	}
	b := &block{src: src, line: line, text: src.text[start:end], before: src.text[:fence]}
	_, b.after = cutLine(src.text[end:])
	b.masked = mask(b.text, scan.opaque, start)
	return b, nil
}

// mask blanks the opaque spans, which count from the start of the file. Length
// and line ends stay, so that offsets and lines in the mask hold in the text.
func mask(text string, opaque []span, start int) string {
	out := []byte(text)
	for _, s := range opaque {
		for i := s.from - start; i < s.to-start; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	return string(out)
}

func isXMLFence(line string) bool {
	info, ok := strings.CutPrefix(line, "```")
	return ok && strings.EqualFold(strings.TrimSpace(info), "xml")
}

// isAlmostXMLFence reports whether CommonMark reads a fence of XML in a line that opens no
// directive: one that is indented, longer, or made of tildes.
func isAlmostXMLFence(line string) bool {
	text := strings.TrimLeft(line, " ")
	for _, c := range []byte("`~") {
		if run := leadingRun(text, c); len(run) >= 3 && len(line)-len(text) <= 3 {
			return strings.EqualFold(strings.TrimSpace(text[len(run):]), "xml")
		}
	}
	return false
}

// opensOuterFence returns the run of four or more backticks, or three or more
// tildes, that line starts with.
func opensOuterFence(line string) string {
	if run := leadingRun(line, '`'); len(run) >= 4 {
		return run
	}
	if run := leadingRun(line, '~'); len(run) >= 3 {
		return run
	}
	return ""
}

// closesFence reports whether line is a fence at least as long as open and
// nothing else.
func closesFence(line, open string) bool {
	line = strings.TrimRight(line, " \t")
	return len(line) >= len(open) && leadingRun(line, open[0]) == line
}

func leadingRun(line string, c byte) string {
	n := 0
	for n < len(line) && line[n] == c {
		n++
	}
	return line[:n]
}

// opaqueTags lists the elements whose content is not XML.
func opaqueTags() []string { return []string{"template", "example", "raw"} }

// span is a range of offsets in a file.
type span struct{ from, to int }

// scanState is what an [opaqueScan] is inside of.
type scanState int

const (
	inText scanState = iota
	inComment
	inCDATA
	inTag    // the start tag of an opaque element
	inOpaque // the content of an opaque element
)

// opaqueScan walks an xml block to its closing fence and notes the content of
// opaque elements, where neither markup nor fences count.
type opaqueScan struct {
	text   string
	state  scanState
	tag    string // the opaque element we are in
	quote  byte   // the quote we are in, within its start tag
	from   int    // start of its content
	opaque []span
}

// run scans from offset start and returns the offset of the line that closes
// the block, or -1.
func (s *opaqueScan) run(start int) int {
	lineStart := true
	for i := start; i < len(s.text); {
		if lineStart && s.state != inOpaque {
			if line, _ := cutLine(s.text[i:]); closesFence(line, "```") {
				return i
			}
		}
		n := s.step(i)
		lineStart = s.text[i+n-1] == '\n'
		i += n
	}
	return -1
}

// step takes what stands at offset i and returns how many bytes that was.
func (s *opaqueScan) step(i int) int {
	rest := s.text[i:]
	switch s.state {
	case inComment:
		return s.leave(rest, "-->")
	case inCDATA:
		return s.leave(rest, "]]>")
	case inTag:
		s.startTag(i)
	case inOpaque:
		if n := closingTag(rest, s.tag); n > 0 {
			s.opaque = append(s.opaque, span{s.from, i})
			s.state = inText
			return n
		}
	case inText:
		return s.enter(rest)
	}
	return 1
}

// leave returns to text behind the end mark.
func (s *opaqueScan) leave(rest, end string) int {
	if strings.HasPrefix(rest, end) {
		s.state = inText
		return len(end)
	}
	return 1
}

// enter looks for what opens something other than text.
func (s *opaqueScan) enter(rest string) int {
	if rest[0] != '<' {
		return 1
	}
	if strings.HasPrefix(rest, "<!--") {
		s.state = inComment
		return len("<!--")
	}
	if strings.HasPrefix(rest, "<![CDATA[") {
		s.state = inCDATA
		return len("<![CDATA[")
	}
	for _, name := range opaqueTags() {
		after, ok := strings.CutPrefix(rest[1:], name)
		if ok && after != "" && strings.ContainsRune(" \t\n/>", rune(after[0])) {
			s.state, s.tag, s.quote = inTag, name, 0
			return 1 + len(name)
		}
	}
	return 1
}

// startTag takes one byte of the start tag of an opaque element.
func (s *opaqueScan) startTag(i int) {
	c := s.text[i]
	switch {
	case s.quote != 0:
		if c == s.quote {
			s.quote = 0
		}
	case c == '"' || c == '\'':
		s.quote = c
	case c == '>' && s.text[i-1] == '/':
		s.state = inText
	case c == '>':
		s.state, s.from = inOpaque, i+1
	}
}

// closingTag returns the length of the end tag of name that rest starts with,
// or 0.
func closingTag(rest, name string) int {
	inner, ok := strings.CutPrefix(rest, "</"+name)
	if !ok {
		return 0
	}
	trimmed := strings.TrimLeft(inner, " \t\n")
	if !strings.HasPrefix(trimmed, ">") {
		return 0
	}
	return len(rest) - len(trimmed) + 1
}
