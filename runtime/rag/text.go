package rag

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rye-mcp/rye-mcp/spaces/search/query"
)

// Bounds of the words of a query, which may be a whole directive.
const (
	maxTerms    = 64
	maxTermSize = 64 // bytes; what is longer is no word
	// maxMatches bounds the documents that FTS5 ranks, at about 1.5 µs each: the rarest
	// words are asked first, and the others left out when there are as many already.
	maxMatches = 20_000
)

// terms are the words of a text, each once, in their order, up to maxTerms of the first
// MaxText bytes. They have only what FTS5 keeps of a text, so nothing in them is syntax.
func terms(text string) (words []string) {
	seen := map[string]bool{}
	separates := func(r rune) bool { return !query.IsWordRune(r) && !unicode.Is(unicode.M, r) }
	for word := range strings.FieldsFuncSeq(text[:min(len(text), MaxText)], separates) {
		word = strings.ToLower(word)
		if seen[word] || len(word) > maxTermSize || !strings.ContainsFunc(word, query.IsWordRune) {
			continue
		}
		seen[word] = true
		words = append(words, word)
		if len(words) == maxTerms {
			break
		}
	}
	return words
}

// byText finds rows by their words, the best first.
func (s search) byText() ([]*candidate, error) {
	words, err := s.rarest(terms(s.Text))
	if err != nil || len(words) == 0 {
		return nil, err
	}
	rows, err := s.tx.QueryContext(s.ctx, `SELECT e.id, e.project, e.key, -bm25(words, 1.0, 0.0) AS score
		FROM words CROSS JOIN entries AS e ON e.id = words.rowid WHERE words MATCH ? AND `+s.where.sql()+`
		ORDER BY score DESC, e.project, e.key LIMIT ?`,
		slices.Concat([]any{s.match(words)}, s.where.args, []any{s.depth()})...)
	if err != nil {
		return nil, err
	}
	var found []*candidate
	err = each(rows, func(scan func(...any) error) error {
		var c candidate
		if err := scan(&c.id, &c.project, &c.key, &c.bm25); err != nil {
			return err
		}
		found = append(found, &c)
		return nil
	})
	return found, err
}

// match is what FTS5 is asked: one of the words, in the namespace.
func (s search) match(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
	}
	return fmt.Sprintf(`scope : "n%d" AND text : (%s)`, s.space.namespace, strings.Join(quoted, " OR "))
}

// rarest leaves out the most common words, so that no more than maxMatches documents are
// ranked. They say least, and cost most.
func (s search) rarest(words []string) ([]string, error) {
	type counted struct {
		word      string
		documents int
	}
	all := make([]counted, len(words))
	for i, word := range words {
		all[i].word = word
		err := s.tx.QueryRowContext(s.ctx, "SELECT doc FROM vocabulary WHERE term = ?", word).Scan(&all[i].documents)
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // none: it is written otherwise there, or not at all
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b counted) int { return cmp.Compare(a.documents, b.documents) })
	var kept []string
	matches := 0
	for _, c := range all {
		if matches += c.documents; matches > maxMatches && len(kept) > 0 {
			break
		}
		kept = append(kept, c.word)
	}
	return kept, nil
}
