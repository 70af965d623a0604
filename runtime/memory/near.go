package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/search/query"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// Bounds of what is told to be near: what may say the same in other words, or the opposite.
const (
	nearWords   = 0.7  // of the words of both, without those that carry little
	nearMeaning = 0.95 // cosine of the vectors
)

// sameSaying reports whether two entries say the same in the same words, whatever their
// kinds. A folded entry is lost but for the answer, so that any other word, sign, order or
// title keeps entries apart: no measure of likeness tells "allowed" from "forbidden".
func sameSaying(a, b memory.Entry) bool {
	return slices.Equal(saying(a.Title), saying(b.Title)) && slices.Equal(saying(a.Text), saying(b.Text))
}

// saying is what a text says, word by word, without what makes no difference: spaces, case,
// articles, commas and the mark at its end.
func saying(text string) (said []string) {
	loud := isLoud(text)
	for line := range strings.Lines(text) {
		begins := true
		for field := range strings.FieldsSeq(line) {
			word := field
			if stem := withoutMark(field, ",;:"); !denies(strings.ToLower(stem)) { // "no, retries" are not "no retries"
				word = stem
			}
			if !empty(cased(field, begins, loud)) {
				said = append(said, cased(word, begins, loud))
			}
			begins = endsSentence(field)
		}
	}
	if len(said) == 0 { // a grade "A" is no article
		return strings.Fields(text)
	}
	last := &said[len(said)-1]
	*last = withoutMark(*last, ".!")
	return said
}

// isLoud reports whether a text is a sentence in capitals alone, in which case says nothing.
func isLoud(text string) bool {
	const sentence = 20 // letters; a shorter text may be a flag or a unit
	letters := 0
	for _, r := range text {
		if unicode.IsLower(r) {
			return false
		}
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters >= sentence
}

// withoutMark is a word without one mark at its end, unless that is of the word itself, as in
// a path of dots.
func withoutMark(word, marks string) string {
	last, size := utf8.DecodeLastRuneInString(word)
	stem := word[:len(word)-size]
	if before, _ := utf8.DecodeLastRuneInString(stem); stem == "" || !strings.ContainsRune(marks, last) || strings.ContainsRune("./,;:!?", before) {
		return word
	}
	return stem
}

// cased is a word in small letters, unless its case may be what it says: that of units,
// flags, versions and identifiers.
func cased(word string, begins, loud bool) string {
	small := strings.ToLower(word)
	_, first := utf8.DecodeRuneInString(word)
	rest := word[first:]
	if loud || begins && (rest != "" || small == "a") && rest == strings.ToLower(rest) {
		return small
	}
	letters := 0
	for _, r := range word {
		if unicode.IsDigit(r) {
			return word
		}
		if unicode.IsLetter(r) {
			letters++
		}
	}
	if letters <= shortWord || strings.ContainsFunc(rest, unicode.IsUpper) && strings.ContainsFunc(word, unicode.IsLower) {
		return word
	}
	return small
}

// shortWord is how many letters a word has that is more often a name than a word.
const shortWord = 2

// empty reports whether a word says nothing by itself.
func empty(word string) bool {
	switch word {
	case "a", "an", "the", "is", "are", "because":
		return true
	}
	return false
}

func endsSentence(field string) bool { return strings.ContainsAny(field[len(field)-1:], ".!?:") }

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

// partsOf are the words of a text; what stands together in a script without blanks is as many
// words as the index takes it for.
func partsOf(text string) (parts []string) {
	for _, word := range wordsOf(text) {
		parts = append(parts, query.Parts(word)...)
	}
	return parts
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

// wording is how near two texts are by their words.
type wording struct {
	words []string // of substance
	facts []string // numbers, names, denials
}

func wordingOf(text string) (w wording) {
	names := namesOf(text)
	for _, word := range partsOf(text) {
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
			for i, w := range partsOf(field) {
				if capital && !strings.ContainsFunc(w, query.IsUnspaced) && (!begins || i > 0 || strings.ContainsFunc(field[first:], unicode.IsUpper)) {
					names[w] = true
				}
			}
			begins = endsSentence(field)
		}
	}
	return names
}

// near reports whether two texts have nearly the same words.
func (w wording) near(other wording) bool { return overlap(w.words, other.words) >= nearWords }

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
		for _, s := range formsOf(word) {
			if !asked[s] {
				continue
			}
			asked[s] = false // each counts once
			if need--; names[word] {
				need--
			}
		}
	}
	return need <= 0
}

// formsOf are what a question may have for a word of an entry: it without the ending of a
// plural, and of a part of [query.Parts] each character.
func formsOf(word string) []string {
	forms := []string{singular(word)}
	if strings.ContainsFunc(word, query.IsUnspaced) && utf8.RuneCountInString(word) > 1 {
		forms = append(forms, strings.Split(word, "")...)
	}
	return forms
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
