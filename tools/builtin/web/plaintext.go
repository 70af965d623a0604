package web

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// plainText writes a page as text: a line for each block, a blank one between
// paragraphs, white space as it is in preformatted parts alone.
type plainText struct {
	b       strings.Builder
	breaks  int  // line breaks that are due
	space   bool // a space is due
	pre     int  // preformatted elements around this place
	started bool
}

// String is what was written.
func (t *plainText) String() string { return t.b.String() }

// breaksOf is how many line breaks stand around an element.
func breaksOf(n *html.Node) int {
	switch n.DataAtom {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Pre, atom.Blockquote,
		atom.Section, atom.Article, atom.Main, atom.Header, atom.Footer, atom.Nav, atom.Aside, atom.Figure, atom.Hr:
		return 2
	case atom.Div, atom.Li, atom.Tr, atom.Dt, atom.Dd, atom.Figcaption, atom.Caption, atom.Address, atom.Form, atom.Fieldset, atom.Details,
		atom.Summary, atom.Br, atom.Thead, atom.Tbody, atom.Tfoot, atom.Body, atom.Option:
		return 1
	default:
		return 0
	}
}

func (t *plainText) write(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		t.text(n)
		return
	case html.ElementNode:
	default:
		t.children(n)
		return
	}
	around := breaksOf(n)
	t.breaks = max(t.breaks, around)
	switch n.DataAtom {
	case atom.Li:
		t.word("-")
		t.space = true
	case atom.Td, atom.Th:
		t.space = true
	case atom.Img:
		t.words(attr(n, "alt"))
	default:
	}
	if n.DataAtom == atom.Pre {
		t.pre++
		defer func() { t.pre-- }()
	}
	t.children(n)
	t.breaks = max(t.breaks, around)
}

func (t *plainText) children(n *html.Node) {
	for child := range n.ChildNodes() {
		t.write(child)
	}
}

func (t *plainText) text(n *html.Node) {
	if t.pre > 0 {
		t.word(n.Data)
		return
	}
	t.words(n.Data)
}

// words writes text with one space where it has white space.
func (t *plainText) words(text string) {
	if strings.TrimLeft(text, " \t\r\n\f") != text {
		t.space = true
	}
	for _, w := range strings.Fields(text) {
		t.word(w)
		t.space = true
	}
	if strings.TrimRight(text, " \t\r\n\f") == text && text != "" {
		t.space = false
	}
}

// word writes a piece after the white space that is due.
func (t *plainText) word(w string) {
	switch {
	case !t.started:
	case t.breaks > 0:
		t.b.WriteString(strings.Repeat("\n", t.breaks))
	case t.space:
		t.b.WriteByte(' ')
	}
	t.started, t.breaks, t.space = true, 0, false
	t.b.WriteString(w)
}
