package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what counts as the same, chosen so that a changed word of substance is
// enough to keep two entries apart: what is folded is lost but for the answer.
const (
	sameWords   = 0.85 // of the words, without those that carry little
	samePairs   = 0.6  // of the pairs of neighbours among them
	sameMeaning = 0.95 // cosine of the vectors
)

// wordsOf are the words of a text in small letters: runs of letters and digits, with what
// joins parts of a name within them.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && !strings.ContainsRune("_-./+#", r)
	})
	kept := words[:0]
	for _, w := range words {
		if w = strings.Trim(w, "-./"); w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

// slight are words that two wordings of a fact differ in.
func slight(word string) bool {
	switch word {
	case "a", "an", "the", "is", "are", "was", "were", "be", "been", "it", "its", "this", "that", "these", "those", "of", "to", "in", "on", "at",
		"by", "for", "with", "and", "or", "as", "so", "we", "has", "have", "had", "do", "does", "did", "there", "here", "which", "because", "since", "also",
		"each", "all", "any", "you", "your", "if", "when", "then", "what", "how", "from", "into", "than", "them", "they", "their", "will", "should", "done":
		return true
	}
	return false
}

// denies reports whether a word turns a fact into its opposite.
func denies(word string) bool {
	switch word {
	case "not", "no", "never", "none", "without", "cannot", "nor", "neither", "instead", "don", "doesn", "isn", "aren", "won", "can", "must", "may", "only", "except", "unless", "nothing":
		return true
	}
	return false
}

// wording is what two texts are compared by.
type wording struct {
	words []string // of substance, in order
	facts []string // words that must be the same, in order: numbers, names, denials
}

func wordingOf(text string) (w wording) {
	names := namesOf(text)
	for _, word := range wordsOf(text) {
		if !slight(word) {
			w.words = append(w.words, word)
		}
		if denies(word) || names[word] || strings.ContainsFunc(word, func(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune("_./+#", r) }) {
			w.facts = append(w.facts, word)
		}
	}
	return w
}

// namesOf are the words, in small letters, that a text writes with a capital where no
// sentence begins.
func namesOf(text string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		begins := true
		for field := range strings.FieldsSeq(line) {
			_, first := utf8.DecodeRuneInString(field)
			capital := strings.ContainsFunc(field, unicode.IsUpper)
			for i, w := range wordsOf(field) {
				if capital && (!begins || i > 0 || strings.ContainsFunc(field[first:], unicode.IsUpper)) {
					names[w] = true
				}
			}
			begins = strings.ContainsAny(field[len(field)-1:], ".!?:")
		}
	}
	return names
}

// sameFact reports whether two texts say the same by their words.
func (w wording) sameFact(other wording) bool {
	return w.comparable(other) && overlap(w.words, other.words) >= sameWords && overlap(pairs(w.words), pairs(other.words)) >= samePairs
}

// touches reports whether an entry has enough words in common with a question to be worth
// telling: the longer a question, the more, for a whole directive has a word in common with
// nearly everything. A name or an identifier counts as two.
func (w wording) touches(entry wording) bool {
	need := 3
	switch n := len(w.words); {
	case n <= shortQuestion:
		need = 1
	case n <= longQuestion:
		need = 2
	}
	asked, names := map[string]bool{}, map[string]bool{}
	for _, word := range w.words {
		asked[singular(word)] = true
	}
	for _, word := range entry.facts {
		names[word] = !denies(word)
	}
	for _, word := range entry.words {
		if s := singular(word); asked[s] {
			asked[s] = false // each counts once
			if need--; names[word] {
				need--
			}
		}
	}
	return need <= 0
}

// Words of substance up to which a question is short, or from which on it is long.
const (
	shortQuestion = 4
	longQuestion  = 12
)

// singular is a word without the ending of a plural.
func singular(word string) string {
	if len(word) > 3 {
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// comparable reports whether nothing of substance is known to differ.
func (w wording) comparable(other wording) bool { return slices.Equal(w.facts, other.facts) }

// pairs are the neighbours in a list.
func pairs(words []string) []string {
	if len(words) < 2 {
		return words
	}
	all := make([]string, len(words)-1)
	for i := range all {
		all[i] = words[i] + " " + words[i+1]
	}
	return all
}

// overlap is how much of two lists is in both, from 0 to 1, whatever the order.
func overlap(a, b []string) float64 {
	in := map[string]int{}
	for _, w := range a {
		in[w] |= 1
	}
	for _, w := range b {
		in[w] |= 2
	}
	both := 0
	for _, sides := range in {
		if sides == 3 {
			both++
		}
	}
	if len(in) == 0 {
		return 0
	}
	return float64(both) / float64(len(in))
}
