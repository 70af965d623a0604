package query

import (
	"strconv"
	"strings"
	"unicode"
)

// Everything is a word that every document of an index has, so that NOT alone means
// something. It is a character for private use, which no keyboard writes.
const Everything = "\U0010FFFD"

// maxTogether bounds in how many ways words that are looked for near each other may
// be spelled.
const maxTogether = 64

// Matcher writes queries for FTS5.
type Matcher struct {
	Columns []string // where words are looked for; none: in all
	// Near is how many words may stand between those that have to occur together;
	// 0 lets them stand anywhere.
	Near int
	// Spellings are the words of the index that a word may mean, the word itself left
	// out; nil takes words as they are. Phrases and the beginnings of words are
	// always taken as they are.
	Spellings func(word string) []string
}

// Match is the expression for a query. All of a text is between quotes there, and so
// is nothing of it syntax of FTS5.
func (m Matcher) Match(n Node) string {
	switch n.Op {
	case Term:
		return m.any(m.variants(n))
	case And:
		return m.and(n.Of)
	case Or:
		parts := make([]string, len(n.Of))
		for i, of := range n.Of {
			parts[i] = m.Match(of)
		}
		return "(" + strings.Join(parts, " OR ") + ")"
	case Not:
		return "(" + quoted(Everything) + " NOT " + m.Match(n.Of[0]) + ")"
	default:
		return quoted(Everything)
	}
}

// and puts what must not occur last: NOT of FTS5 has two sides.
func (m Matcher) and(nodes []Node) string {
	var words []Node
	var with, without []string
	for _, n := range nodes {
		switch {
		case n.Op == All:
		case n.Op == Not:
			without = append(without, m.Match(n.Of[0]))
		case n.Op == Term && m.Near > 0:
			words = append(words, n)
		default:
			with = append(with, m.Match(n))
		}
	}
	if len(words) > 0 {
		with = append(with, m.near(words))
	}
	if len(with) == 0 {
		with = []string{quoted(Everything)}
	}
	expression := strings.Join(with, " AND ")
	if len(with) > 1 {
		expression = "(" + expression + ")"
	}
	if len(without) == 0 {
		return expression
	}
	return "(" + expression + " NOT (" + strings.Join(without, " OR ") + "))"
}

// near is for words that stand together, each in one of its spellings.
func (m Matcher) near(words []Node) string {
	if len(words) == 1 {
		return m.Match(words[0])
	}
	all := make([][]string, len(words))
	for i, w := range words {
		all[i] = m.variants(w)
	}
	most := evenly(len(words))
	groups := []string{""}
	for _, spelled := range all {
		var longer []string
		for _, group := range groups {
			for _, s := range spelled[:min(most, len(spelled))] {
				longer = append(longer, group+" "+s)
			}
		}
		groups = longer
	}
	for i, group := range groups {
		groups[i] = "NEAR(" + group[1:] + ", " + strconv.Itoa(m.Near) + ")"
	}
	return m.any(groups)
}

// evenly is how many spellings each of n words may have, so that all ways to put
// them together stay few.
func evenly(n int) int {
	most := 1
	for ways := 1; ways <= maxTogether; {
		most++
		ways = 1
		for range n {
			if ways *= most; ways > maxTogether {
				break
			}
		}
	}
	return most - 1
}

// variants are a term and its other spellings, as FTS5 reads them.
func (m Matcher) variants(n Node) []string {
	text := quoted(n.Text)
	if n.Prefix {
		text += "*"
	}
	all := []string{text}
	if m.Spellings != nil && !n.Quoted && !n.Prefix && Word(n.Text) {
		for _, other := range m.Spellings(n.Text) {
			all = append(all, quoted(other))
		}
	}
	return all
}

// any is for alternatives, each within the columns.
func (m Matcher) any(alternatives []string) string {
	within := ""
	if len(m.Columns) > 0 {
		within = "{" + strings.Join(m.Columns, " ") + "} : "
	}
	if len(alternatives) == 1 {
		return within + alternatives[0]
	}
	parts := make([]string, len(alternatives))
	for i, a := range alternatives {
		parts[i] = within + a
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// quoted is a text that FTS5 reads as words. A NUL byte would end the expression.
func quoted(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, Apart(strings.ToValidUTF8(text, " ")))
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}
