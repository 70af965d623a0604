package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse reads a query. A text that is no part of the language is looked for as words,
// so no text of a user has a meaning to the database. The error is an *Error.
func Parse(text string) (Node, error) {
	if len(text) > MaxBytes {
		return Node{}, &Error{Query: text[:MaxBytes], Pos: MaxBytes,
			Reason: fmt.Sprintf("longer than %d bytes; search for a few words", MaxBytes)}
	}
	p := parser{text: text}
	if err := p.scan(); err != nil {
		return Node{}, err
	}
	if len(p.tokens) == 0 {
		return Node{}, p.fail(0, `no word to search for; give words, "a phrase" or the beginning of a word with *, or * alone to list everything`)
	}
	node, err := p.or(0)
	if err != nil {
		return Node{}, err
	}
	if len(p.tokens) > 0 { // or stops at nothing else
		return Node{}, p.fail(p.tokens[0].pos, `no parenthesis is open here; leave ")" out, or put the text in quotes`)
	}
	return node, nil
}

// parser is a parser by recursive descent:
//
//	or  = and { "OR" and }
//	and = not { ["AND"] not }
//	not = "NOT" not | "(" or ")" | term | "*"
type parser struct {
	text   string
	tokens []token // that are left
}

// token is an operator or a parenthesis, which has a word, or a node.
type token struct {
	pos  int
	word string
	node Node
}

func (p *parser) fail(pos int, reason string) error {
	return &Error{Query: p.text, Pos: pos, Reason: reason}
}

// scan splits the text into tokens. A term without letters and digits is left out:
// the index has nothing of it.
func (p *parser) scan() error {
	var different []Node
	for pos := 0; pos < len(p.text); {
		t, length, err := p.token(pos)
		if err != nil {
			return err
		}
		pos += length
		switch {
		case t.word == "" && t.node.Op == Term && !strings.ContainsFunc(t.node.Text, IsWordRune):
			continue
		case t.word == "" && t.node.Op == Term && !slices.ContainsFunc(different, t.node.Equal):
			different = append(different, t.node)
		}
		if len(different) > MaxTerms {
			return p.fail(t.pos, fmt.Sprintf("more than %d different words; search for a few", MaxTerms))
		}
		p.tokens = append(p.tokens, t)
	}
	return nil
}

// token reads the token at pos, and says how long it is in the text. A blank is a
// term without words.
func (p *parser) token(pos int) (t token, length int, err error) {
	rest := p.text[pos:]
	first, size := utf8.DecodeRuneInString(rest)
	switch {
	case unicode.IsSpace(first):
		return token{pos: pos, node: Node{Op: Term}}, size, nil
	case first == '(' || first == ')':
		return token{pos: pos, word: rest[:1]}, 1, nil
	case first == '"':
		return p.phrase(pos)
	}
	word := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()"`, r) }); end >= 0 {
		word = rest[:end]
	}
	switch bare := strings.TrimRight(word, "*"); {
	case word == "AND" || word == "OR" || word == "NOT":
		return token{pos: pos, word: word}, len(word), nil
	case bare == "":
		return token{pos: pos, node: Node{Op: All}}, len(word), nil
	case strings.Contains(bare, "*"):
		return token{}, 0, p.fail(pos+strings.Index(bare, "*"), "a * stands only at the end of a word, for how it may go on; put the text in quotes to look for its words")
	default:
		return token{pos: pos, node: Node{Op: Term, Text: bare, Prefix: bare != word}}, len(word), nil
	}
}

func (p *parser) phrase(pos int) (t token, length int, err error) {
	text, after, closed := strings.Cut(p.text[pos+1:], `"`)
	if !closed {
		return token{}, 0, p.fail(pos, `the phrase that begins here is not closed; add a second "`)
	}
	stars := len(after) - len(strings.TrimLeft(after, "*"))
	return token{pos: pos, node: Node{Op: Term, Text: text, Quoted: true, Prefix: stars > 0}}, len(text) + 2 + stars, nil
}

// next is the word of the next token: empty before a term, and at the end.
func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0].word
}

func (p *parser) take() token {
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *parser) or(depth int) (Node, error) {
	first, err := p.and(depth)
	if err != nil {
		return Node{}, err
	}
	of := []Node{first}
	for p.next() == "OR" {
		p.take()
		node, err := p.and(depth)
		if err != nil {
			return Node{}, err
		}
		of = append(of, node)
	}
	return joined(Or, of), nil
}

func (p *parser) and(depth int) (Node, error) {
	first, err := p.not(depth)
	if err != nil {
		return Node{}, err
	}
	of := []Node{first}
	for len(p.tokens) > 0 && p.next() != "OR" && p.next() != ")" {
		if p.next() == "AND" {
			p.take()
		}
		node, err := p.not(depth)
		if err != nil {
			return Node{}, err
		}
		of = append(of, node)
	}
	return joined(And, of), nil
}

func (p *parser) not(depth int) (Node, error) {
	if len(p.tokens) == 0 {
		return Node{}, p.fail(len(p.text), "something is missing here: AND, OR and NOT are followed by words; in quotes they are words themselves")
	}
	t := p.take()
	if depth >= MaxDepth && t.word != "" {
		return Node{}, p.fail(t.pos, fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	switch t.word {
	case "":
		return t.node, nil
	case "NOT":
		of, err := p.not(depth + 1)
		return Node{Op: Not, Of: []Node{of}}, err
	case "(":
		return p.group(t, depth+1)
	case ")":
		return Node{}, p.fail(t.pos, `nothing stands before this ")"; give words, or put the text in quotes`)
	default:
		return Node{}, p.fail(t.pos, t.word+" needs words on both sides; in quotes it is a word itself")
	}
}

// group reads what follows a parenthesis, and the one that closes it.
func (p *parser) group(open token, depth int) (Node, error) {
	if len(p.tokens) == 0 {
		return Node{}, p.fail(open.pos, `the parenthesis that opens here is not closed; add a ")", or put the text in quotes`)
	}
	node, err := p.or(depth)
	if err != nil {
		return Node{}, err
	}
	if p.next() != ")" {
		return Node{}, p.fail(open.pos, `the parenthesis that opens here is not closed; add a ")", or put the text in quotes`)
	}
	p.take()
	return node, nil
}

// joined is one node of several. Those of the same operator become one, and what is
// said twice stands once.
func joined(op Op, nodes []Node) Node {
	var of []Node
	for _, n := range nodes {
		parts := []Node{n}
		if n.Op == op {
			parts = n.Of
		}
		for _, part := range parts {
			if !slices.ContainsFunc(of, part.Equal) {
				of = append(of, part)
			}
		}
	}
	if len(of) == 1 {
		return of[0]
	}
	return Node{Op: op, Of: of}
}
