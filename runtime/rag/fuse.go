package rag

import (
	"cmp"
	"slices"
)

// rankConstant is k of reciprocal rank fusion, as its authors have chosen it.
const rankConstant = 60

// fused is a candidate that has passed, with what orders it.
type fused struct {
	*candidate

	rank  float64 // the sum of weight/(k + rank) over the lists it is in; higher is better
	score float64 // see Hit.Score
	by    Method
}

// fuse leaves out what is not good enough, and orders the rest. Each list is ordered, the
// best first; a candidate in both is the same pointer.
func fuse(byText, byVector []*candidate, floor, ratio float64) []fused {
	limits := thresholdsOf(byText, byVector, floor, ratio)
	ranks := map[*candidate]*fused{}
	var all []*fused
	add := func(list []*candidate, weight func(*candidate) float64) {
		for i, c := range list {
			if ranks[c] == nil {
				ranks[c] = &fused{candidate: c}
				all = append(all, ranks[c])
			}
			ranks[c].rank += weight(c) / float64(rankConstant+i+1)
		}
	}
	add(byVector, func(*candidate) float64 { return 1 })
	add(byText, limits.textWeight(byText))
	var passed []fused
	for _, f := range all {
		if limits.judge(f) {
			passed = append(passed, *f)
		}
	}
	slices.SortFunc(passed, func(a, b fused) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), nearest(a.candidate, b.candidate))
	})
	return passed
}

// thresholds are what a candidate must reach.
type thresholds struct {
	floor, cosine float64 // of a vector that was compared: always, and to pass by it
	bm25, best    float64 // to pass by words; the best there is
}

func thresholdsOf(byText, byVector []*candidate, floor, ratio float64) thresholds {
	t := thresholds{floor: floor, cosine: floor}
	if len(byVector) > 0 {
		t.cosine = max(floor, byVector[0].cosine*ratio)
	}
	if len(byText) > 0 {
		t.best = byText[0].bm25
		t.bm25 = t.best * ratio
	}
	return t
}

// textWeight is how much ranks of words count beside those of vectors. Words that single
// out a row, as an id does, count as much as its vector. Where many rows pass by their words
// these hardly tell them apart, so the one voice of the list is shared among the rows that
// vectors speak of as well. A row that does not pass by its words has no voice. All that pass
// have the same, so that the order is monotone in both lists.
func (t thresholds) textWeight(byText []*candidate) func(*candidate) float64 {
	sharing := 0
	for _, c := range byText {
		if c.compared && t.words(c) {
			sharing++
		}
	}
	return func(c *candidate) float64 {
		if !t.words(c) {
			return 0
		}
		return 1 / float64(max(1, sharing))
	}
}

// words reports whether a candidate is good enough by its words.
func (t thresholds) words(c *candidate) bool { return c.bm25 > 0 && c.bm25 >= t.bm25 }

// judge reports whether a candidate is a hit, and how.
func (t thresholds) judge(f *fused) bool {
	words := t.words(f.candidate)
	if !f.compared {
		f.by = ByText
		if t.best > 0 {
			f.score = f.bm25 / t.best
		}
		return words
	}
	alike := f.cosine >= t.cosine
	f.score = f.cosine
	switch {
	case words && alike:
		f.by = ByBoth
	case words:
		f.by = ByText
	default:
		f.by = ByVectors
	}
	return f.cosine >= t.floor && (words || alike)
}
