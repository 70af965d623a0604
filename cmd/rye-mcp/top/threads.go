package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// showing says which threads are listed.
type showing int

const (
	everything showing = iota
	unfinished         // have not ended
	asking
	failed // ended otherwise than completed
)

func (s showing) String() string {
	return [...]string{"all", "unfinished", "asking", "failed"}[s]
}

// next is the one that comes after.
func (s showing) next() showing { return (s + 1) % (failed + 1) }

// threads are the rows of a board, and how they are listed.
type threads struct {
	rows    map[thread.ID]*board.Row // by key; they belong to whoever made the board
	totals  board.Totals
	omitted int
	known   bool // there was a board
	folded  map[thread.ID]bool
	filter  string
	show    showing
}

func newThreads() threads {
	return threads{rows: map[thread.ID]*board.Row{}, folded: map[thread.ID]bool{}}
}

// take makes a board, or what has changed, the rows.
func (t *threads) take(b board.Board) {
	if b.Whole {
		clear(t.rows)
	}
	for _, row := range b.Rows {
		t.rows[row.Key] = row
	}
	for _, key := range b.Gone {
		delete(t.rows, key)
		delete(t.folded, key)
	}
	t.totals, t.omitted, t.known = b.Totals, b.Omitted, true
}

// entry is a line of the list.
type entry struct {
	row    *board.Row
	ask    bool   // it is the line about its question, above the tree
	prefix string // the branches that it hangs on
	hidden int    // threads below it that are folded away
}

// choice names a line of the list.
type choice struct {
	key thread.ID
	ask bool
}

func (e entry) choice() choice { return choice{e.row.Key, e.ask} }

// list is what is shown: those that ask, the one first whose deadline is next, then the
// trees; of these what works before what has ended, and the newest first.
func (t *threads) list() []entry {
	children, shown := t.relations()
	var list []entry
	for _, row := range t.rows {
		if row.Question != nil && t.takes(row, strings.ToLower(t.filter)) {
			list = append(list, entry{row: row, ask: true})
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(a.row.Question.DeadlineAt.Compare(b.row.Question.DeadlineAt), cmp.Compare(a.row.Key, b.row.Key))
	})
	w := walk{threads: t, children: children, shown: shown, list: list}
	w.below("", "", false)
	return w.list
}

// relations are the rows below each, in their order, and the keys of those that are shown:
// what the filter takes, and what is above that.
func (t *threads) relations() (children map[thread.ID][]*board.Row, shown map[thread.ID]bool) {
	children, shown = map[thread.ID][]*board.Row{}, make(map[thread.ID]bool, len(t.rows))
	needle := strings.ToLower(t.filter)
	for _, row := range t.rows {
		parent := row.Parent
		if t.rows[parent] == nil || parent == row.Key {
			parent = ""
		}
		children[parent] = append(children[parent], row)
		if !t.takes(row, needle) {
			continue
		}
		for up := row; up != nil && !shown[up.Key]; up = t.rows[up.Parent] {
			shown[up.Key] = true
		}
	}
	for parent, rows := range children {
		slices.SortFunc(rows, func(a, b *board.Row) int { return inOrder(a, b, parent == "") })
	}
	return children, shown
}

// inOrder compares rows of one level: roots by what is to be looked at, others as they were
// started.
func inOrder(a, b *board.Row, roots bool) int {
	if roots {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.Key, b.Key))
	}
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key))
}

func rank(row *board.Row) int {
	switch {
	case row.Status.Terminal():
		return 2
	case row.Queued:
		return 1
	}
	return 0
}

// takes reports whether a row is one that was asked for.
func (t *threads) takes(row *board.Row, needle string) bool {
	switch t.show {
	case everything:
	case unfinished:
		if row.Status.Terminal() {
			return false
		}
	case asking:
		if row.Question == nil {
			return false
		}
	case failed:
		if !row.Status.Terminal() || row.Status == thread.Completed || row.Status == thread.Continued {
			return false
		}
	}
	if needle == "" {
		return true
	}
	for _, text := range []string{string(row.Key), string(row.ThreadID), row.Name, row.Directive, row.Model, string(row.Status)} {
		if strings.Contains(strings.ToLower(text), needle) {
			return true
		}
	}
	return false
}

// walk lists trees.
type walk struct {
	*threads
	children map[thread.ID][]*board.Row
	shown    map[thread.ID]bool
	list     []entry
}

// maxDepth bounds how far a tree is drawn; threads are not that deep.
const maxDepth = 64

func (w *walk) below(parent thread.ID, prefix string, branches bool) {
	rows := slices.DeleteFunc(slices.Clone(w.children[parent]), func(r *board.Row) bool { return !w.shown[r.Key] })
	for i, row := range rows {
		here, under := "", ""
		if branches {
			here, under = "├─", "│ "
			if i == len(rows)-1 {
				here, under = "└─", "  "
			}
		}
		e := entry{row: row, prefix: prefix + here}
		if w.folded[row.Key] {
			e.hidden = w.count(row.Key, 0)
		}
		w.list = append(w.list, e)
		if e.hidden == 0 && len(prefix) < 4*maxDepth {
			w.below(row.Key, prefix+under, true)
		}
	}
}

// count is how many rows are below one.
func (w *walk) count(key thread.ID, depth int) (n int) {
	if depth > maxDepth {
		return 0
	}
	for _, row := range w.children[key] {
		n += 1 + w.count(row.Key, depth+1)
	}
	return n
}

// unfinishedBelow is how many threads below one have not ended.
func (t *threads) unfinishedBelow(key thread.ID) (n int) {
	for _, row := range t.rows {
		if row.Status.Terminal() {
			continue
		}
		for up, depth := t.rows[row.Parent], 0; up != nil && depth < maxDepth; up, depth = t.rows[up.Parent], depth+1 {
			if up.Key == key {
				n++
				break
			}
		}
	}
	return n
}
