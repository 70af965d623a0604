package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search/query"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// How much is shown of a hit, in characters: its texts are somebody's, and a list is
// there to choose from.
const (
	shownName        = 100
	shownDescription = 300
	shownPreview     = 200
	// beforeMatch is how much of a preview stands before the match.
	beforeMatch = 60
)

// shower makes hits of rows, from their files.
type shower struct {
	read  Source
	terms []query.Node
}

// hit reads an item. It is not ok when its file has gone.
func (s shower) hit(r row) (Hit, bool) {
	hit := Hit{ID: r.ID, Type: r.Kind, Source: r.Space}
	doc, ok := readDocument(s.read.Roots(), r.Entry)
	if !ok {
		return hit, false
	}
	hit.Name, hit.Description = plain(doc.name, shownName), plain(doc.description, shownDescription)
	hit.Category = plain(doc.category, shownName)
	hit.Preview = s.preview(sign.Hide(doc.body))
	return hit, true
}

// readDocument reads an item as it is now. It is not ok when there is none.
func readDocument(roots resolve.Roots, e resolve.Entry) (document, bool) {
	src, err := resolve.Read(roots, e)
	switch {
	case isGone(err):
		return document{}, false
	case err != nil:
		return broken(e, "cannot be read: "+item.ShownIn(err.Error()), nil), true
	}
	return describe(e, src), true
}

// preview is the text around the first of the terms, or its beginning.
func (s shower) preview(body string) string {
	body = body[:min(len(body), maxBodyBytes)]
	at := s.firstMatch(body)
	from := at
	for n := 0; from > 0 && n < beforeMatch; n++ {
		_, size := utf8.DecodeLastRuneInString(body[:from])
		from -= size
	}
	if from > 0 { // begin with a whole word
		if gap := strings.IndexFunc(body[from:at], unicode.IsSpace); gap >= 0 {
			from += gap
		}
	}
	text := plain(body[from:], shownPreview)
	if from > 0 && text != "" {
		return "…" + text
	}
	return text
}

// firstMatch is where the first word stands that one of the terms begins with; 0
// where there is none.
func (s shower) firstMatch(body string) int {
	var starts []start
	at := len(body)
	for _, t := range s.terms {
		if strings.ContainsFunc(t.Text, query.IsUnspaced) { // it stands within what has no blanks
			if i := strings.Index(body, strings.TrimSpace(t.Text)); i >= 0 {
				at = min(at, i)
			}
			continue
		}
		words := strings.FieldsFunc(t.Text, func(r rune) bool { return !query.IsWordRune(r) })
		if len(words) > 0 {
			starts = append(starts, start{fold(words[0]), t.Prefix && len(words) == 1})
		}
	}
	if at = firstWord(body[:at], starts); at == len(body) {
		return 0
	}
	return at
}

// start is a word that is looked for, or the beginning of one.
type start struct {
	word   string
	prefix bool
}

// firstWord is where the first of such words stands in a text; its length where none does.
func firstWord(text string, starts []start) int {
	inWord := func(r rune) bool { return query.IsWordRune(r) && !query.IsUnspaced(r) }
	for from := 0; len(starts) > 0 && from < len(text); {
		gap := strings.IndexFunc(text[from:], inWord)
		if gap < 0 {
			break
		}
		from += gap
		end := strings.IndexFunc(text[from:], func(r rune) bool { return !inWord(r) && !unicode.Is(unicode.Mn, r) })
		if end < 0 {
			end = len(text) - from
		}
		word := fold(text[from : from+end])
		for _, s := range starts {
			if word == s.word || s.prefix && strings.HasPrefix(word, s.word) {
				return from
			}
		}
		from += end
	}
	return len(text)
}

// fold is a word as the index has it, for nearly all words: in small letters and
// without marks.
func fold(word string) string {
	ascii := true
	for i := 0; i < len(word) && ascii; i++ {
		ascii = word[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(word)
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(word)))
}

// plain is a text on one line, without anything that is not seen: what would move a
// cursor, turn the direction of the text or hide words from a person that a model
// reads.
func plain(text string, most int) string {
	var b strings.Builder
	gap := false
	n := 0
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			gap = b.Len() > 0
			continue
		}
		if n++; n > most {
			return b.String() + "…"
		}
		if gap {
			b.WriteByte(' ')
			n++
			gap = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
