package web

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of what the converter is given. It copies a text once for each element
// around it, indents each line by the lists around it, and fills up the rows of a
// table, so that a small page could become an endless one.
const (
	maxDepth  = 80
	maxNested = 8 // lists and quotations around a place
	maxCells  = 20_000
)

// flatten puts the text of elements that nest too deep in their place, makes blocks
// of tables that are too large, and joins texts that follow each other.
func flatten(n *html.Node, depth, nested int) {
	var texts []*html.Node
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.ElementNode {
			child = flattenElement(n, child, depth, nested)
		}
		if child.Type == html.TextNode {
			texts = append(texts, child)
		} else {
			join(n, texts)
			texts = texts[:0]
		}
		child = next
	}
	join(n, texts)
}

// flattenElement returns what stands in the place of an element.
func flattenElement(parent, n *html.Node, depth, nested int) *html.Node {
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Blockquote:
		nested++
	case atom.Table:
		if depth > maxDepth/2 || !smallTable(n) || inLink(n) {
			dissolve(n)
		} else {
			simplify(n)
		}
	case atom.B, atom.Strong, atom.Em, atom.I, atom.Del, atom.S, atom.Strike:
		if holdsTable(n) { // the converter takes no table in one of them apart
			asBlock(n)
		}
	default:
	}
	if depth < maxDepth && nested <= maxNested {
		flatten(n, depth+1, nested)
		return n
	}
	var t plainText
	t.write(n)
	text := &html.Node{Type: html.TextNode, Data: " " + t.String() + " "}
	parent.InsertBefore(text, n)
	parent.RemoveChild(n)
	return text
}

// join makes one text of several that follow each other.
func join(parent *html.Node, texts []*html.Node) {
	if len(texts) < 2 {
		return
	}
	var all strings.Builder
	for i, t := range texts {
		all.WriteString(t.Data)
		if i > 0 {
			parent.RemoveChild(t)
		}
	}
	texts[0].Data = all.String()
}

// smallTable reports whether a table, filled up, has cells that can be counted.
func smallTable(table *html.Node) bool {
	rows, widest, cells := 0, 0, 0
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Tr:
			rows, cells = rows+1, 0
		case atom.Td, atom.Th:
			cells++
			widest = max(widest, cells)
		case atom.Table:
			return false // tables in tables are there for the layout
		default:
		}
	}
	return (rows+1)*widest <= maxCells
}

// dissolve makes blocks of the parts of a table. Tables in it stay tables.
func dissolve(table *html.Node) {
	asBlock(table)
	for n := table.FirstChild; n != nil; n = n.NextSibling {
		switch n.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption, atom.Colgroup, atom.Col:
			if n.DataAtom == atom.Td || n.DataAtom == atom.Th {
				asBlock(n)
				continue
			}
			dissolve(n)
		default:
		}
	}
}

// simplify makes lines of what the converter takes no table apart for, when it is in a
// cell: of lists, headings, quotations and rules.
func simplify(table *html.Node) {
	var rules []*html.Node
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Ul, atom.Ol:
			asBlock(n)
		case atom.Li:
			asBlock(n)
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: "- "}, n.FirstChild)
		case atom.Hr:
			rules = append(rules, n)
		default:
		}
	}
	for _, n := range rules {
		n.Parent.RemoveChild(n)
	}
}

// inLink reports whether an element is in a link, which has no room for a table.
func inLink(n *html.Node) bool {
	for at := n.Parent; at != nil; at = at.Parent {
		if at.DataAtom == atom.A {
			return true
		}
	}
	return false
}

func holdsTable(n *html.Node) bool {
	for below := range n.Descendants() {
		if below.DataAtom == atom.Table {
			return true
		}
	}
	return false
}

func asBlock(n *html.Node) { n.DataAtom, n.Data = atom.Div, "div" }
