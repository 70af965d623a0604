package board

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxGone is of how many rows that went the version is remembered in which they did. A caller
// with an older version gets the whole board.
const maxGone = 4096

// shown are the rows of a keeper, with the versions in which they came to be as they are.
type shown struct {
	epoch   string // tells the versions of this keeper from others
	version uint64
	rows    map[thread.ID]*entry    // by key
	order   []thread.ID             // keys, a parent before what is below it
	keys    map[thread.ID]thread.ID // by id of any link
	gone    []went                  // oldest first
	forgot  uint64                  // versions up to this one lack rows that went
	omitted int
	at      time.Time

	sets    map[thread.ID]counted
	threads int   // that there were at the last look
	deleted int64 // Seq of the newest deletion then
}

// entry is a row with what it was made of.
type entry struct {
	stand stand
	row   *Row
	in    *thread.Workspace // that the newest thread works in; nil: in none of its own
	since uint64
	above []thread.ID // keys of the rows above, nearest first
}

// went is a row that is no more.
type went struct {
	key   thread.ID
	at    uint64
	above []thread.ID
}

func newShown() *shown {
	return &shown{epoch: rand.Text()[:10], rows: map[thread.ID]*entry{}, keys: map[thread.ID]thread.ID{}}
}

// name is the version as it is told. Of a part of the board it names that.
func (s *shown) name(top thread.ID) string {
	return fmt.Sprintf("%s.%d.%s", s.epoch, s.version, top)
}

// known reads a version that was told for the same part of the board.
func (s *shown) known(version string, top thread.ID) (uint64, bool) {
	epoch, rest, _ := strings.Cut(version, ".")
	number, of, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(number, 10, 64)
	return n, err == nil && epoch == s.epoch && of == string(top) && n >= s.forgot && n <= s.version
}

// take puts the rows of a look in the place of those before. Entries that have not changed
// are the same ones.
func (s *shown) take(rows map[thread.ID]*entry, omitted int) {
	next := s.version + 1
	changed := omitted != s.omitted
	for key, was := range s.rows {
		if rows[key] == nil {
			s.gone = append(s.gone, went{key, next, was.above})
			changed = true
		}
	}
	for key, now := range rows {
		if s.rows[key] != now {
			now.since, changed = next, true
		}
	}
	if !changed {
		return
	}
	if extra := len(s.gone) - maxGone; extra > 0 {
		s.forgot = s.gone[extra-1].at
		s.gone = slices.Clone(s.gone[extra:])
	}
	s.version, s.rows, s.omitted = next, rows, omitted
	s.arrange()
}

// since tells what is new since a version, and whether anything is.
func (s *shown) since(version string, top thread.ID) (b Board, changed bool) {
	from, known := s.known(version, top)
	b = Board{Version: s.name(top), Whole: !known, At: s.at, Rows: []*Row{}, Omitted: s.omitted}
	within := func(key thread.ID, above []thread.ID) bool {
		return top == "" || key == top || slices.Contains(above, top)
	}
	for _, key := range s.order {
		e := s.rows[key]
		if !within(key, e.above) {
			continue
		}
		b.Totals.add(e.row, key == top || e.row.Parent == "")
		if !known || e.since > from {
			b.Rows = append(b.Rows, e.row)
		}
	}
	if known {
		b.Gone = s.goneSince(from, within)
	}
	return b, !known || s.version != from && (top == "" || len(b.Rows)+len(b.Gone) > 0)
}

// goneSince are the rows that went since a version and did not come back.
func (s *shown) goneSince(from uint64, within func(thread.ID, []thread.ID) bool) (keys []thread.ID) {
	seen := map[thread.ID]bool{}
	for _, g := range slices.Backward(s.gone) {
		if g.at <= from {
			break
		}
		if s.rows[g.key] == nil && !seen[g.key] && within(g.key, g.above) {
			seen[g.key] = true
			keys = append(keys, g.key)
		}
	}
	return keys
}

func (t *Totals) add(r *Row, isTop bool) {
	switch {
	case r.Status.Terminal() && r.RetryAt == nil:
		t.Ended++
	case r.Queued:
		t.Queued++
	default:
		t.Working++
	}
	if r.Asks {
		t.Asking++
	}
	if !isTop {
		return
	}
	t.Spend = t.Spend.Plus(r.TreeSpend)
	if r.Budget != nil {
		t.Reserved = t.Reserved.Plus(r.Budget.Reserved)
	}
}

// arrange puts the rows in order: the rows below one come behind it, the newest first.
func (s *shown) arrange() {
	below := map[thread.ID][]*entry{}
	for _, e := range s.rows {
		below[e.row.Parent] = append(below[e.row.Parent], e)
	}
	s.order = s.order[:0:0]
	var walk func(parent thread.ID)
	walk = func(parent thread.ID) {
		list := below[parent]
		slices.SortFunc(list, func(a, b *entry) int {
			return cmp.Or(b.row.CreatedAt.Compare(a.row.CreatedAt), cmp.Compare(b.row.Key, a.row.Key))
		})
		for _, e := range list {
			s.order = append(s.order, e.row.Key)
			walk(e.row.Key)
		}
	}
	walk("")
}
