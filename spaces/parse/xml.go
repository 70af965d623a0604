package parse

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Bounds of a block. Real directives nest below ten elements and have below two
// hundred; an element of seven bytes costs the reader one and a half kilobytes.
const (
	maxXMLDepth    = 64
	maxXMLElements = 10_000
)

// element is a node of the tree of a block.
type element struct {
	src      *source
	name     string
	attrs    []xml.Attr
	children []*element
	line     int    // of its start tag, in the file
	text     string // its direct character data
	inner    string // what stands between its tags, as written
	outer    string // the same with its tags
	from, to int    // offsets of outer in the block
	decoded  *[]charData
}

// charData is text of the block that is written in another way than it reads: with
// entities, or as CDATA.
type charData struct {
	from, to int // offsets in the block
	text     string
}

// tree reads the block into elements. It refuses what encoding/xml lets pass
// though it is not well-formed: attributes given twice, a second root, text
// outside the root and namespaces that nothing declares.
func (b *block) tree() (*element, error) {
	p := treeParser{block: b, dec: xml.NewDecoder(strings.NewReader(b.masked))}
	for {
		err := p.token()
		switch {
		case errors.Is(err, io.EOF):
			if p.root == nil {
				return nil, b.src.errorf(b.line, "the xml block is empty; it must hold a <directive>")
			}
			return p.root, nil
		case err != nil:
			return nil, err
		}
	}
}

// treeParser builds the tree of one block.
type treeParser struct {
	block *block
	dec   *xml.Decoder
	root  *element
	open  []*openElement
	count int // of elements
	// decoded are in the order of the block.
	decoded []charData
}

// openElement is an element whose end tag is still to come.
type openElement struct {
	*element
	from, content int // offsets of its start tag and of what follows that
	text          strings.Builder
}

// token takes the next token.
func (p *treeParser) token() error {
	row, _ := p.dec.InputPos()
	line := p.block.line + row - 1
	start := int(p.dec.InputOffset())
	tok, err := p.dec.Token()
	var syntax *xml.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return p.block.src.errorf(p.block.line+syntax.Line-1, "%s", said(item.ShownIn(syntax.Msg)))
	case err != nil && !errors.Is(err, io.EOF):
		return p.block.src.errorf(line, "%s", said(item.ShownIn(strings.TrimPrefix(err.Error(), "xml: "))))
	case err != nil:
		return err
	}
	switch tok := tok.(type) {
	case xml.StartElement:
		return p.start(tok, line, start)
	case xml.EndElement:
		p.end(start)
	case xml.CharData:
		if end := int(p.dec.InputOffset()); p.block.text[start:end] == p.block.masked[start:end] && p.block.text[start:end] != string(tok) {
			p.decoded = append(p.decoded, charData{start, end, string(tok)})
		}
		return p.charData(string(tok), line)
	case xml.Directive:
		return p.block.src.errorf(line, "a <!%.10s…> declaration is not allowed", tok)
	}
	return nil
}

func (p *treeParser) start(tok xml.StartElement, line, start int) error {
	e := &element{src: p.block.src, name: tok.Name.Local, attrs: tok.Attr, line: line, decoded: &p.decoded}
	if tok.Name.Space != "" {
		return e.errorf("<%s> is in the namespace %q; directives use none", e.name, tok.Name.Space)
	}
	seen := make(map[xml.Name]bool, len(tok.Attr))
	for _, a := range tok.Attr {
		if seen[a.Name] {
			return e.errorf("<%s> has the attribute %s twice", e.name, a.Name.Local)
		}
		seen[a.Name] = true
	}
	p.count++
	switch {
	case p.count > maxXMLElements:
		return e.errorf("the block has more than %d elements", maxXMLElements)
	case len(p.open) >= maxXMLDepth:
		return e.errorf("elements are nested more than %d deep", maxXMLDepth)
	case len(p.open) > 0:
		parent := p.open[len(p.open)-1]
		parent.children = append(parent.children, e)
	case p.root != nil:
		return e.errorf("<%s> stands beside <%s>; the block holds one <directive>", e.name, p.root.name)
	default:
		p.root = e
	}
	p.open = append(p.open, &openElement{element: e, from: start, content: int(p.dec.InputOffset())})
	return nil
}

// end closes the innermost element; the decoder has checked that names match.
// An empty element tag ends where it starts, at the end of the tag.
func (p *treeParser) end(start int) {
	last := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	last.element.text = last.text.String()
	last.inner = p.block.text[last.content:start]
	last.element.from, last.to = last.from, int(p.dec.InputOffset())
	last.outer = p.block.text[last.from:last.to]
}

func (p *treeParser) charData(text string, line int) error {
	if len(p.open) > 0 {
		p.open[len(p.open)-1].text.WriteString(text)
		return nil
	}
	if stray := strings.TrimLeft(text, " \t\n"); stray != "" {
		line += strings.Count(text[:len(text)-len(stray)], "\n")
		return p.block.src.errorf(line, "text stands outside <directive>; the prompt belongs below the block")
	}
	return nil
}

func (e *element) errorf(format string, args ...any) error {
	return e.src.errorf(e.line, format, args...)
}

// attr returns an attribute with the space around it cut off, and whether it is
// there.
func (e *element) attr(name string) (string, bool) {
	for _, a := range e.attrs {
		if a.Name.Local == name && a.Name.Space == "" {
			return strings.TrimSpace(a.Value), true
		}
	}
	return "", false
}

// boolAttr reads an attribute that is true or false; absent is false.
func (e *element) boolAttr(name string) (bool, error) {
	s, ok := e.attr(name)
	if !ok {
		return false, nil
	}
	v, err := strconv.ParseBool(strings.ToLower(s))
	if err != nil {
		return false, e.errorf("<%s %s=%q> must be true or false", e.name, name, s)
	}
	return v, nil
}

// prose returns the text of the element: decoded, or as written where it holds
// elements of its own.
func (e *element) prose() string {
	if len(e.children) > 0 {
		return strings.TrimSpace(e.inner)
	}
	return strings.TrimSpace(e.text)
}

// spoken is the element with its tags as a model reads it: its tags as written, and its text
// decoded. Opaque text stays as it is.
func (e *element) spoken() string {
	var b strings.Builder
	at := e.from
	for _, d := range *e.decoded {
		if d.from >= at && d.to <= e.to {
			b.WriteString(e.outer[at-e.from : d.from-e.from])
			b.WriteString(d.text)
			at = d.to
		}
	}
	b.WriteString(e.outer[at-e.from:])
	return b.String()
}

// spokenProse is [element.prose], decoded where it holds elements of its own, too.
func (e *element) spokenProse() string {
	if len(e.children) == 0 {
		return e.prose()
	}
	text, tag := e.spoken(), strings.LastIndex(e.outer, "</")-len(e.inner)
	return strings.TrimSpace(text[tag:strings.LastIndex(text, "</")])
}

// label names the element in messages.
func (e *element) label() said {
	name := item.Shown(e.name)
	if named, _ := e.attr("name"); named != "" {
		return said("<" + name + " name=" + strconv.Quote(item.Shown(named)) + ">")
	}
	return said("<" + name + ">")
}
