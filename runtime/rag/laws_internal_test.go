package rag

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// lists draws the two lists of a fusion over some candidates.
func lists(r *rapid.T) (byText, byVector []*candidate) {
	for i := range rapid.IntRange(0, 8).Draw(r, "candidates") {
		c := &candidate{id: int64(i + 1), key: fmt.Sprintf("k%d", i)}
		in := rapid.IntRange(1, 3).Draw(r, "lists")
		if in&1 != 0 {
			c.bm25 = rapid.Float64Range(0.01, 9).Draw(r, "bm25")
			byText = append(byText, c)
		}
		if in&2 != 0 {
			c.cosine, c.compared = rapid.Float64Range(-1, 1).Draw(r, "cosine"), true
			byVector = append(byVector, c)
		}
	}
	slices.SortFunc(byText, func(a, b *candidate) int {
		if a.bm25 != b.bm25 {
			return map[bool]int{true: -1, false: 1}[a.bm25 > b.bm25]
		}
		return a.before(b)
	})
	slices.SortFunc(byVector, nearest)
	return byText, byVector
}

// A candidate that is better in one list, and no worse in the other, is not after the other
// one, when both pass.
func TestFusionIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		byText, byVector := lists(r)
		ordered := fuse(byText, byVector, rapid.Float64Range(-1, 1).Draw(r, "floor"), rapid.Float64Range(0, 1).Draw(r, "ratio"))
		place := func(in []*candidate, c *candidate) int {
			if at := slices.Index(in, c); at >= 0 {
				return at
			}
			return len(in)
		}
		for i, a := range ordered {
			for _, b := range ordered[:i] { // b is before a
				text := place(byText, a.candidate) - place(byText, b.candidate)
				vectors := place(byVector, a.candidate) - place(byVector, b.candidate)
				if text <= 0 && vectors <= 0 && text+vectors < 0 {
					r.Fatalf("%s is before %s, which is better in both lists", b.key, a.key)
				}
			}
		}
	})
}

// TestWordsShareTheirVoice: words that many rows have do not move what vectors order, and
// words that single out a row do.
func TestWordsShareTheirVoice(t *testing.T) {
	t.Parallel()
	var byText, byVector []*candidate
	for i := range 20 { // the order of the words is the reverse of that of the vectors
		c := &candidate{id: int64(i + 1), key: fmt.Sprintf("k%02d", i), bm25: 2 + float64(i)/100, cosine: 0.9 - float64(i)/100, compared: true}
		byVector, byText = append(byVector, c), slices.Insert(byText, 0, c)
	}
	keys := func() (keys []string) {
		for _, f := range fuse(byText, byVector, 0.3, 0.7) {
			keys = append(keys, f.key)
		}
		return keys
	}
	if got := keys(); got[0] != "k00" || got[19] != "k19" {
		t.Errorf("words that all rows have make %v of the order of the vectors", got)
	}
	byText[0].bm25 = 9 // that of k19: nothing else passes by its words
	if got := keys(); got[0] != "k19" || got[1] != "k00" || got[2] != "k01" {
		t.Errorf("words that one row has make %v, want that row first and then the order of the vectors", got)
	}
}

// Every row that passes has reached what the query asks for, and nothing that has is left out.
func TestThresholds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		byText, byVector := lists(r)
		floor, ratio := rapid.Float64Range(-1, 1).Draw(r, "floor"), rapid.Float64Range(0, 1).Draw(r, "ratio")
		passed := map[*candidate]fused{}
		for _, f := range fuse(byText, byVector, floor, ratio) {
			passed[f.candidate] = f
		}
		for _, c := range slices.Concat(byText, byVector) {
			words := len(byText) > 0 && c.bm25 > 0 && c.bm25 >= ratio*byText[0].bm25
			want := words
			if c.compared {
				want = c.cosine >= floor && (words || c.cosine >= ratio*byVector[0].cosine)
			}
			if _, got := passed[c]; got != want {
				r.Fatalf("%+v passes: %t, want %t", *c, got, want)
			}
		}
	})
}

// Texts of hits never take more than they may, none is shortened while another has more,
// and what is shortened is the beginning of what it was.
func TestBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		texts := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom([]string{"a", "ü", "𝔘", "long words "}).Draw(r, "unit"), rapid.IntRange(1, 3000).Draw(r, "times"))
		}), 1, 8).Draw(r, "texts")
		hits := make([]Hit, len(texts))
		for i, text := range texts {
			hits[i].Text = text
		}
		tokens := rapid.IntRange(1, 3000).Draw(r, "tokens")
		fitted, total := fit(hits, tokens), 0
		for i, h := range fitted {
			total += len(h.Text)
			if h.Truncated == (h.Text == texts[i]) || !strings.HasPrefix(texts[i], strings.TrimSuffix(h.Text, "…")) || !utf8.ValidString(h.Text) {
				r.Fatalf("hit %d of %d bytes has %d, truncated %t", i, len(texts[i]), len(h.Text), h.Truncated)
			}
		}
		room := tokens * bytesPerToken
		if total > room {
			r.Fatalf("%d bytes, there is room for %d", total, room)
		}
		if want := min(len(texts), max(1, room/leastShare)); len(fitted) < want {
			r.Fatalf("%d hits in %d bytes, want %d", len(fitted), room, want)
		}
		for i, h := range fitted {
			for j, other := range fitted {
				if h.Truncated && len(other.Text) > len(h.Text)+utf8.UTFMax {
					r.Fatalf("hit %d is shortened to %d bytes, and hit %d has %d", i, len(h.Text), j, len(other.Text))
				}
			}
		}
	})
}

// FuzzTerms reads any text. Its words have nothing that is syntax to FTS5.
func FuzzTerms(f *testing.F) {
	for _, text := range []string{
		"rye/core/registry a-b it's foo( AND NOT * \"", "NEAR(a b) {text} : a ^a + b", "\x00\xff", "e\u0301 ß İ 𝔘 \u0301", strings.Repeat("a ", 1000),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := terms(text)
		if len(words) > maxTerms {
			t.Fatalf("%d words", len(words))
		}
		for i, word := range words {
			if word == "" || len(word) > maxTermSize || strings.ContainsAny(word, "\"*():^+-{}\x00 ") || !utf8.ValidString(word) || slices.Contains(words[:i], word) {
				t.Fatalf("%q has the word %q", text, word)
			}
		}
	})
}
