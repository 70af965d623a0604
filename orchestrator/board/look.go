package board

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// stand is all of a row that the store tells at each look. Where it is as it was, the row
// is the one before: long values and files are not read again.
type stand struct {
	newest      threadRow
	key, parent thread.ID
	links       int
	spawned     time.Time // of the first link
	cost        thread.Cost
	budget      budget
	treeSpend   thread.Micros
	question    string // id
	entries     Entries
	verified    Verified
}

// threadRow is what of a row is told, without what cannot be compared.
type threadRow struct {
	id                      thread.ID
	kind                    thread.Kind
	directive, name, model  string
	worker                  string
	status                  thread.State
	cost                    thread.Cost
	tokens                  int64
	unread                  int
	queued, waits, stopping bool
	created, updated, ended time.Time
	retry                   time.Time
}

func rowOf(r thread.Record) threadRow {
	return threadRow{
		id: r.ThreadID, kind: r.Kind, directive: r.Directive, name: r.Name, model: r.Model, worker: r.Worker, status: r.Status, cost: r.Cost, tokens: r.TokenCount,
		unread: r.Unread, queued: r.Queued(), waits: r.Yielded && !r.Status.Terminal(), stopping: !r.CancelRequestedAt.IsZero() && !r.Status.Terminal(),
		created: r.CreatedAt, updated: r.UpdatedAt, ended: r.CompletedAt, retry: r.RetryAt,
	}
}

// budget is a row of the ledger; the zero value stands for none.
type budget struct {
	known, active                  bool
	most, spent, reserved, pledged thread.Micros
}

// chain is the threads of a row, first to newest.
type chain struct {
	links []thread.Record
	above *chain // nil: it is a root
	live  bool   // it has not ended, or something below it has not
	open  bool   // it has not ended itself
	set   bool
	inSet bool // it is below a set
}

func (c *chain) key() thread.ID        { return c.links[0].ThreadID }
func (c *chain) newest() thread.Record { return c.links[len(c.links)-1] }

// glimpse is one look at the store.
type glimpse struct {
	chains    []*chain
	of        map[thread.ID]*chain          // by id of any link
	questions map[thread.ID]thread.Question // the oldest that is open, by thread
	budgets   map[thread.ID]store.Budget
	tree      map[thread.ID]thread.Micros // spent by a thread and all below it
	counts    map[thread.ID]counted       // by set
	threads   int
	deleted   int64
}

// counted is how the entries of a set stood, and whether that may have changed since.
type counted struct {
	store.SetCounts
	busy bool
}

// look looks at the threads and brings the rows up to date. The caller holds k.looking.
func (k *Keeper) look(ctx context.Context) error {
	g, err := k.glimpse(ctx)
	if err != nil {
		return err
	}
	rows := make(map[thread.ID]*entry, len(g.chains))
	keys := make(map[thread.ID]thread.ID, len(g.of))
	files := k.reader(ctx)
	for _, c := range g.chains {
		now := k.stand(g, c)
		was := k.rows.rows[c.key()]
		if was == nil || was.stand != now {
			was = &entry{stand: now, above: keysAbove(c)}
			was.row, was.in = files.row(g, c, now)
		}
		if k.wasApplied(was) {
			was = was.applied()
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rows[c.key()] = was
		for _, link := range c.links {
			keys[link.ThreadID] = c.key()
		}
	}
	k.rows.take(rows, g.omitted())
	k.rows.keys, k.rows.sets, k.rows.at = keys, g.counts, k.Threads.Now().UTC()
	k.rows.threads, k.rows.deleted = g.threads, g.deleted
	return nil
}

// wasApplied reports whether the changes of a row have come to be applied since it was made.
func (k *Keeper) wasApplied(e *entry) bool {
	if e.row.Changes == nil || e.row.Applied || e.row.EndedAt == nil || e.in == nil {
		return false
	}
	if e.in.Applied != "" && e.in.Applied == e.in.Result { // on another machine, perhaps
		return true
	}
	return k.AppliedAt != nil && !k.AppliedAt(*e.in).Before(*e.row.EndedAt)
}

// applied is the entry with its changes applied.
func (e *entry) applied() *entry {
	now, row := *e, *e.row
	row.Applied, now.row = true, &row
	return &now
}

// glimpse reads how all threads stand.
func (k *Keeper) glimpse(ctx context.Context) (*glimpse, error) {
	s := k.Threads.Store
	seen, err := s.Glance(ctx, k.Ended)
	if err != nil {
		return nil, err
	}
	g := &glimpse{of: map[thread.ID]*chain{}, questions: map[thread.ID]thread.Question{}, budgets: map[thread.ID]store.Budget{}, threads: seen.Threads, deleted: seen.Deleted}
	g.link(seen.Rows)
	g.nest()
	g.choose()
	open, err := s.Questions(ctx, store.QuestionFilter{Open: true})
	if err != nil {
		return nil, err
	}
	for _, q := range slices.Backward(open) {
		g.questions[q.ThreadID] = q
	}
	if err := g.readBudgets(ctx, s); err != nil {
		return nil, err
	}
	return g, k.countSets(ctx, g)
}

// link makes chains of rows. Of a circle, which only a damaged registry can have, each row
// is in one of them.
func (g *glimpse) link(rows []thread.Record) {
	byID := make(map[thread.ID]thread.Record, len(rows))
	for _, rec := range rows {
		byID[rec.ThreadID] = rec
	}
	add := func(rec thread.Record) {
		c := &chain{}
		for known := true; known && g.of[rec.ThreadID] == nil; {
			g.of[rec.ThreadID] = c
			c.links = append(c.links, rec)
			last := rec
			rec, known = byID[rec.ContinuationOf]
			known = known && rec.ContinuationThreadID == last.ThreadID
		}
		if len(c.links) == 0 {
			return
		}
		slices.Reverse(c.links)
		g.chains = append(g.chains, c)
	}
	for _, rec := range rows {
		if _, continued := byID[rec.ContinuationThreadID]; !continued {
			add(rec)
		}
	}
	for _, rec := range rows {
		add(rec)
	}
}

// nest finds what is above each chain. A circle is cut.
func (g *glimpse) nest() {
	for _, c := range g.chains {
		above := g.of[c.links[0].ParentID]
		for up := above; up != nil; up = up.above {
			if up == c {
				above = nil
				break
			}
		}
		c.above = above
		c.open, c.set = !c.newest().Over(), c.newest().Kind == thread.KindSet
	}
	for _, c := range g.chains {
		for up := c.above; up != nil; up = up.above {
			up.live = up.live || c.open
			c.inSet = c.inSet || up.set
		}
	}
}

// choose leaves out what a set counts: what is below it and has ended.
func (g *glimpse) choose() {
	g.chains = slices.DeleteFunc(g.chains, func(c *chain) bool { return c.inSet && !c.open && !c.live })
}

// readBudgets reads the money of all chains.
func (g *glimpse) readBudgets(ctx context.Context, s store.Glancer) error {
	var ids []thread.ID
	for id := range g.of {
		ids = append(ids, id) // of those that work too: money may be settled before the row is
	}
	list, err := s.Budgets(ctx, ids)
	if err != nil {
		return err
	}
	g.tree = make(map[thread.ID]thread.Micros, len(list))
	for _, b := range list {
		g.budgets[b.ThreadID] = b
		g.tree[b.ThreadID] += b.Actual
	}
	for _, b := range list {
		if !b.Active {
			continue // its spending is counted above it
		}
		seen := map[thread.ID]bool{b.ThreadID: true}
		for up := b.ParentID; up != "" && !seen[up]; up = g.budgets[up].ParentID {
			seen[up] = true
			g.tree[up] += b.Actual
		}
	}
	return nil
}

// countSets counts the entries of those sets of which they may have changed.
func (k *Keeper) countSets(ctx context.Context, g *glimpse) error {
	g.counts = map[thread.ID]counted{}
	same := g.threads == k.rows.threads && g.deleted == k.rows.deleted
	for _, c := range g.chains {
		if !c.set {
			continue
		}
		id, busy := c.newest().ThreadID, c.open || c.live
		was, known := k.rows.sets[id]
		if !known || !same || busy || was.busy {
			counts, err := k.Threads.Store.SetCounts(ctx, id)
			if err != nil && !errors.Is(err, store.ErrNoSet) { // whose entries are lost
				return err
			}
			was = counted{counts, busy}
		}
		g.counts[id] = was
	}
	return nil
}

// entriesOf is what a set tells of its entries.
func entriesOf(c store.SetCounts) Entries {
	e := Entries{Items: c.Items, Waiting: c.Waiting + c.Retrying, Reused: c.Reused, Deleted: c.Deleted, Failed: c.Refused}
	for state, n := range c.States {
		switch {
		case !state.Terminal():
			e.Working += n
		case state == thread.Completed:
			e.Completed += n
		default:
			e.Failed += n
		}
	}
	return e
}

// stand is how a chain stands.
func (k *Keeper) stand(g *glimpse, c *chain) stand {
	first, newest := c.links[0], c.newest()
	s := stand{
		newest: rowOf(newest), key: first.ThreadID, links: len(c.links), spawned: first.CreatedAt,
		entries: entriesOf(g.counts[newest.ThreadID].SetCounts), verified: k.verdicts.of(newest),
	}
	if c.above != nil {
		s.parent = c.above.key()
	}
	for _, link := range c.links {
		s.cost = s.cost.Add(link.Cost)
		s.treeSpend = s.treeSpend.Plus(g.tree[link.ThreadID])
	}
	if b, ok := g.budgets[newest.ThreadID]; ok {
		s.budget = budget{true, b.Active, b.MaxSpend, b.Actual, b.Reserved, b.Pledged}
	}
	if c.open {
		s.question = g.questions[newest.ThreadID].ID
	}
	return s
}

// omitted is how many threads no row stands for.
func (g *glimpse) omitted() int {
	stands := 0
	for _, c := range g.chains {
		if c.inSet {
			continue // the outermost set counts it
		}
		stands += len(c.links) + g.counts[c.newest().ThreadID].Below
	}
	return max(0, g.threads-stands)
}
