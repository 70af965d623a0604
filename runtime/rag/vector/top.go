package vector

import (
	"cmp"
	"math"
	"slices"
)

// Bounded is a record with the most that its cosine can be.
type Bounded struct {
	Seq   int64
	Bound float64
}

// Top keeps the records with the highest bounds.
type Top struct {
	most int
	heap []Bounded // the lowest first
	rest float64   // the highest bound that was left out
}

// NewTop keeps so many records at most.
func NewTop(most int) *Top { return &Top{most: most, rest: math.Inf(-1)} }

// Add keeps a record, if there are not enough with higher bounds. One without a bound that
// is a number is kept before all others: its cosine can be anything.
func (t *Top) Add(b Bounded) {
	if math.IsNaN(b.Bound) {
		b.Bound = math.Inf(1)
	}
	if len(t.heap) < t.most {
		t.heap = append(t.heap, b)
		t.up(len(t.heap) - 1)
		return
	}
	if t.most == 0 || b.Bound <= t.heap[0].Bound {
		t.rest = max(t.rest, b.Bound)
		return
	}
	t.rest = max(t.rest, t.heap[0].Bound)
	t.heap[0] = b
	t.down()
}

func (t *Top) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if t.heap[parent].Bound <= t.heap[i].Bound {
			return
		}
		t.heap[parent], t.heap[i] = t.heap[i], t.heap[parent]
		i = parent
	}
}

func (t *Top) down() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(t.heap) {
			return
		}
		if child+1 < len(t.heap) && t.heap[child+1].Bound < t.heap[child].Bound {
			child++
		}
		if t.heap[i].Bound <= t.heap[child].Bound {
			return
		}
		t.heap[i], t.heap[child] = t.heap[child], t.heap[i]
		i = child
	}
}

// Merge adds what another has kept, and what that has left out.
func (t *Top) Merge(other *Top) {
	for _, b := range other.heap {
		t.Add(b)
	}
	t.rest = max(t.rest, other.rest)
}

// Sorted are the records that were kept, the highest bound first.
func (t *Top) Sorted() []Bounded {
	return slices.SortedFunc(slices.Values(t.heap), func(a, b Bounded) int {
		return cmp.Or(cmp.Compare(b.Bound, a.Bound), cmp.Compare(a.Seq, b.Seq))
	})
}

// Rest is the highest bound of what was left out, and -Inf when nothing was.
func (t *Top) Rest() float64 { return t.rest }
