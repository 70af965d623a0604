package search

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// QueryError says that the text or the scope of a query cannot be searched for.
type QueryError struct {
	Query  string // the text or scope
	Pos    int    // where in it, in bytes from 0
	Reason string // what is wrong and what is valid
}

func (e *QueryError) Error() string {
	return fmt.Sprintf("search for %q, at position %d: %s", e.Query, e.Pos, e.Reason)
}

// maxQueryBytes bounds a query. A longer text is not a query but a document, of
// which every word would have to occur.
const maxQueryBytes = 4096

// term is a word or phrase to look for.
type term struct {
	text   string
	prefix bool // the last word may go on
}

// parseText splits the text of a query into terms that all have to match. A lone
// "*" gives none: it matches everything. AND says what holds anyway; OR and NOT
// are refused, for looking them up as words would find nothing. Whatever else
// stands in the text is looked for, none of it is syntax of the database.
func parseText(text string) ([]term, error) {
	if len(text) > maxQueryBytes {
		return nil, &QueryError{Query: text[:64] + "…", Pos: maxQueryBytes,
			Reason: fmt.Sprintf("longer than %d bytes; search for a few words", maxQueryBytes)}
	}
	if trimmed := strings.TrimSpace(text); trimmed != "" && strings.Trim(trimmed, "*") == "" {
		return nil, nil
	}
	var terms []term
	for pos := 0; pos < len(text); {
		r, size := utf8.DecodeRuneInString(text[pos:])
		if unicode.IsSpace(r) {
			pos += size
			continue
		}
		t, length, err := nextTerm(text, pos)
		if err != nil {
			return nil, err
		}
		switch word := text[pos : pos+length]; word {
		case "AND":
			pos += length
			continue
		case "OR", "NOT":
			return nil, &QueryError{Query: text, Pos: pos,
				Reason: "words must all occur, " + word + ` is not known; make it two searches, or put "` + word + `" in quotes to look for the word`}
		}
		pos += length
		if strings.ContainsFunc(t.text, isWordRune) {
			terms = append(terms, t)
		}
	}
	if len(terms) == 0 {
		return nil, &QueryError{Query: text,
			Reason: `no word to search for; give words, "a phrase" or the beginning of a word with *, or * alone to list everything`}
	}
	return terms, nil
}

// nextTerm reads the term at pos and returns its length in the text.
func nextTerm(text string, pos int) (t term, length int, err error) {
	rest := text[pos:]
	if phrase, quoted := strings.CutPrefix(rest, `"`); quoted {
		phrase, after, closed := strings.Cut(phrase, `"`)
		if !closed {
			return term{}, 0, &QueryError{Query: text, Pos: pos,
				Reason: `the phrase that begins here is not closed; add a second "`}
		}
		stars := len(after) - len(strings.TrimLeft(after, "*"))
		return term{text: phrase, prefix: stars > 0}, len(phrase) + 2 + stars, nil
	}
	word := rest
	if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
		word = rest[:end]
	}
	bare := strings.TrimRight(word, "*")
	return term{text: bare, prefix: bare != word}, len(word), nil
}

// isWordRune reports what the index keeps of a text; the rest separates words.
// It follows the categories of FTS5's unicode61 tokenizer: L*, N*, Co.
func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
}

// matchExpression writes terms as an FTS5 query. Quoted text is never read as
// syntax there; a NUL byte would end the query, though.
func matchExpression(terms []term) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		text := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(t.text, " "))
		quoted[i] = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		if t.prefix {
			quoted[i] += "*"
		}
	}
	return strings.Join(quoted, " ")
}
