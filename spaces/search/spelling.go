package search

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search/query"
)

// maxSpellings is how many other words a word of a fuzzy query may mean, the nearest
// first.
const maxSpellings = 24

// A word of less letters has too many others near it.
const (
	shortestFuzzy    = 3 // takes one letter to be changed
	shortestTwoEdits = 5
)

// spelling is a word of the index with what it takes to come to it.
type spelling struct {
	word     string
	distance int
	items    int // that have it
}

// spellings are the words of the index near the words of a query.
func (x *Index) spellings(ctx context.Context, node query.Node, most int) (near map[string][]string, err error) {
	wanted := map[string]string{}
	for _, t := range node.Terms() {
		if !t.Quoted && !t.Prefix && query.Word(t.Text) && utf8.RuneCountInString(t.Text) >= shortestFuzzy {
			wanted[t.Text] = fold(t.Text)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	found := map[string][]spelling{}
	rows, err := x.db.QueryContext(ctx, "SELECT term, doc FROM vocabulary")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s spelling
		if err := rows.Scan(&s.word, &s.items); err != nil {
			return nil, err
		}
		for word, folded := range wanted {
			allowed := edits(folded, most)
			if s.distance = distance(folded, s.word, allowed); s.distance > 0 && s.distance <= allowed {
				found[word] = append(found[word], s)
			}
		}
	}
	near = map[string][]string{}
	for word, all := range found {
		slices.SortFunc(all, func(a, b spelling) int {
			return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.items, a.items), cmp.Compare(a.word, b.word))
		})
		for _, s := range all[:min(maxSpellings, len(all))] {
			near[word] = append(near[word], s.word)
		}
	}
	return near, rows.Err()
}

// edits is how many letters of a word may be changed.
func edits(word string, most int) int {
	switch n := utf8.RuneCountInString(word); {
	case n < shortestFuzzy:
		return 0
	case n < shortestTwoEdits:
		return min(most, 1)
	default:
		return most
	}
}

// distance is how many letters change between two words, and more than most when
// more do.
func distance(a, b string, most int) int {
	if n := len(a) - len(b); n > 4*most || -n > 4*most {
		return most + 1
	}
	// Letters of more than one byte are made bytes: those of a word are few.
	return item.EditDistance(bytesOf(a, a), bytesOf(b, a), most)
}

// bytesOf writes a word with one byte a letter; those beyond ASCII by their place in
// the alphabet word. Others are all the same letter, which it has not.
func bytesOf(word, alphabet string) string {
	if utf8.RuneCountInString(word) == len(word) {
		return word
	}
	letters := make([]byte, 0, len(word))
	for _, r := range word {
		switch at := runeAt(alphabet, r); {
		case r < utf8.RuneSelf:
			letters = append(letters, byte(r))
		case at >= 0:
			letters = append(letters, byte(0x80+at%0x7f))
		default:
			letters = append(letters, 0xff)
		}
	}
	return string(letters)
}

// runeAt is the place of a letter among the letters of a word, -1 for none.
func runeAt(word string, letter rune) int {
	n := 0
	for _, r := range word {
		if r == letter {
			return n
		}
		n++
	}
	return -1
}
