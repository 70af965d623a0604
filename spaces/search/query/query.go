// Package query is the language of searches: words that all have to occur, AND,
// OR, NOT, parentheses, "phrases", the beginnings of words with a *, and * alone
// for everything.
//
//	Parse → Node → Node.Match (what FTS5 is asked)
package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Limits of a query. A longer text is not a query but a document; what is nested
// deeper was not written by hand; and each word costs the database a look at all
// places where it stands.
const (
	MaxBytes = 4096
	MaxDepth = 16
	MaxTerms = 64
)

// Error says where a text is no query.
type Error struct {
	Query  string
	Pos    int    // in bytes from 0
	Reason string // what is wrong and what is valid
}

// nearby is how much of a query an error repeats.
const nearby = 24

func (e *Error) Error() string {
	if e.Pos >= len(e.Query) {
		return fmt.Sprintf("the query, at its end (position %d): %s", e.Pos, e.Reason)
	}
	rest := strings.ToValidUTF8(e.Query[e.Pos:], "\uFFFD")
	if runes := []rune(rest); len(runes) > nearby {
		rest = string(runes[:nearby]) + "…"
	}
	return fmt.Sprintf("the query, at position %d, before %q: %s", e.Pos, rest, e.Reason)
}

// Op is what a node does with what is below it.
type Op int

// The operators. A node of And or Or has at least two nodes below it, one of Not
// has one, the others have none.
const (
	All  Op = iota // matches everything
	Term           // a word, or a phrase
	And
	Or
	Not
)

// Node is a query, or a part of one.
type Node struct {
	Op     Op
	Text   string // of a Term
	Quoted bool   // a Term in quotes
	Prefix bool   // of a Term: its last word may go on
	Of     []Node
}

// String writes a node as a query that parses to it.
func (n Node) String() string {
	switch n.Op {
	case All:
		return "*"
	case Term:
		return n.term()
	case Not:
		return "NOT " + n.Of[0].operand()
	case And:
		return n.joined(" AND ")
	case Or:
		return n.joined(" OR ")
	}
	return ""
}

func (n Node) joined(word string) string {
	parts := make([]string, len(n.Of))
	for i, of := range n.Of {
		parts[i] = of.operand()
	}
	return strings.Join(parts, word)
}

func (n Node) term() string {
	text := n.Text
	if n.Quoted {
		text = `"` + text + `"`
	}
	if n.Prefix {
		text += "*"
	}
	return text
}

func (n Node) operand() string {
	if n.Op == And || n.Op == Or {
		return "(" + n.String() + ")"
	}
	return n.String()
}

// Terms are the words and phrases that a hit may have, each once, in the order of
// the query. Terms below a Not are not among them.
func (n Node) Terms() []Node {
	if n.Op == Term {
		return []Node{n}
	}
	if n.Op == Not {
		return nil
	}
	var terms []Node
	for _, of := range n.Of {
		for _, t := range of.Terms() {
			if !slices.ContainsFunc(terms, t.Equal) {
				terms = append(terms, t)
			}
		}
	}
	return terms
}

// Equal reports whether two nodes are the same query.
func (n Node) Equal(other Node) bool {
	return n.Op == other.Op && n.Text == other.Text && n.Quoted == other.Quoted && n.Prefix == other.Prefix &&
		slices.EqualFunc(n.Of, other.Of, Node.Equal)
}

// IsWordRune reports what the index keeps of a text; the rest separates words. It
// follows the categories of FTS5's tokenizer unicode61: L*, N*, Co.
func IsWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
}
