package rag

import (
	"cmp"
	"context"
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
	maxTermSize = 64 // bytes; a longer one is no word
	// maxMatches bounds the documents that FTS5 ranks, at about 1.5 µs each: the rarest
	// words are asked first, and the others left out when there are as many already.
	maxMatches = 20_000
)

// terms are the words of a text, each once, in their order, up to maxTerms of the first
// MaxText bytes; of scripts without blanks pairs of characters. They have only what FTS5 keeps
// of a text, so nothing in them is syntax.
func terms(text string) (words []string) {
	seen := map[string]bool{}
	separates := func(r rune) bool { return !query.IsWordRune(r) && !unicode.Is(unicode.M, r) }
	for word := range strings.FieldsFuncSeq(text[:min(len(text), MaxText)], separates) {
		for _, part := range query.Parts(strings.ToLower(word)) {
			if seen[part] || len(part) > maxTermSize || !strings.ContainsFunc(part, query.IsWordRune) {
				continue
			}
			seen[part] = true
			if words = append(words, part); len(words) == maxTerms {
				return words
			}
		}
	}
	return words
}

// tokens are what FTS5 has of a word.
func tokens(word string) []string { return strings.Fields(query.Apart(word)) }

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
		quoted[i] = `"` + strings.ReplaceAll(query.Apart(word), `"`, `""`) + `"`
	}
	return fmt.Sprintf(`scope : "%s" AND text : (%s)`, scopeOf(s.space.namespace), strings.Join(quoted, " OR "))
}

// scopeOf is the word that all documents of a namespace have.
func scopeOf(namespace int64) string { return fmt.Sprintf("n%d", namespace) }

// putWords replaces what a trigger has put into the words of an entry, where its text has
// characters that each are a word.
func putWords(ctx context.Context, tx *sql.Tx, id, namespace int64, text string) error {
	apart := query.Apart(text)
	if apart == text {
		return nil
	}
	_, err := tx.ExecContext(ctx, "UPDATE words SET text = ?, scope = ? WHERE rowid = ?", apart, scopeOf(namespace), id)
	return err
}

// putAllWords is [putWords] for all entries.
func putAllWords(ctx context.Context, tx *sql.Tx) error {
	const some = 200
	type entry struct {
		id, namespace int64
		text          string
	}
	for last, more := int64(0), true; more; {
		rows, err := tx.QueryContext(ctx, "SELECT id, namespace, text FROM entries WHERE id > ? ORDER BY id LIMIT ?", last, some)
		if err != nil {
			return err
		}
		var entries []entry
		if err := each(rows, func(scan func(...any) error) error {
			var e entry
			err := scan(&e.id, &e.namespace, &e.text)
			entries = append(entries, e)
			return err
		}); err != nil {
			return err
		}
		for _, e := range entries {
			if err := putWords(ctx, tx, e.id, e.namespace, e.text); err != nil {
				return err
			}
			last = e.id
		}
		more = len(entries) == some
	}
	return nil
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
		documents, err := s.documents(word)
		if err != nil {
			return nil, err
		}
		all[i] = counted{word, documents}
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

// documents is how many documents have a word, at most.
func (s search) documents(word string) (fewest int, err error) {
	for i, token := range tokens(word) {
		documents := 0
		err := s.tx.QueryRowContext(s.ctx, "SELECT doc FROM vocabulary WHERE term = ?", token).Scan(&documents)
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // none: it is written otherwise there, or not at all
			return 0, err
		}
		if i == 0 || documents < fewest {
			fewest = documents
		}
	}
	return fewest, nil
}
