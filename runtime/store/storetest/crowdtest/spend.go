package crowdtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// spender is a process that works with the budgets of one thread and those it
// makes below it.
type spender struct {
	store  store.Store
	rng    *rand.Rand
	self   string
	active []thread.ID
	made   int
}

// spend makes operations with budgets, each followed by a line. It makes one for each byte
// of its input, and any number once that has ended: a process that writes as fast as it can
// leaves those that look at the ledger ever more to look at. Its arguments are the thread, a
// seed and how many at most.
func (p playing) spend(ctx context.Context, in io.Reader, out io.Writer) error {
	seed, err := strconv.ParseUint(p.args[1], 10, 64)
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(p.args[2])
	if err != nil {
		return err
	}
	self := p.args[0]
	by := &spender{store: p.store, rng: rand.New(rand.NewPCG(seed, seed)), self: self, active: []thread.ID{thread.ID(self)}}
	allowed := bufio.NewReader(in)
	for range most {
		if _, err := allowed.ReadByte(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		said, err := by.step(ctx)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, said); err != nil {
			return err
		}
	}
	return nil
}

// step makes one operation and returns what is to be said about it: the thread
// and its total when something was spent.
func (p *spender) step(ctx context.Context) (said string, err error) {
	i := p.rng.IntN(len(p.active))
	id := p.active[i]
	b, err := p.store.Budget(ctx, id)
	if err != nil {
		return "", err
	}
	switch p.rng.IntN(6) {
	case 0:
		return "reserved", p.reserve(ctx, b)
	case 4:
		return "raised", p.raise(ctx, b)
	case 5:
		return "handed over", p.handOver(ctx, i)
	case 1:
		if i == 0 {
			return "went on", nil // its own thread is settled by whoever started it
		}
		p.active = append(p.active[:i], p.active[i+1:]...)
		return "settled", storetest.As(p.store).Settle(ctx, id, testTime)
	}
	if b.Remaining() == 0 {
		return "had nothing", nil
	}
	return p.spend(ctx, b)
}

// spend pledges before it spends, as others may have been given more meanwhile.
func (p *spender) spend(ctx context.Context, b store.Budget) (said string, err error) {
	cost := 1 + thread.Micros(p.rng.Int64N(int64(b.Remaining())))
	err = storetest.As(p.store).Pledge(ctx, b.ThreadID, cost, testTime)
	if short := new(store.InsufficientError); errors.As(err, &short) {
		return "had too little", nil
	}
	if err != nil {
		return "", err
	}
	total := b.Own + 1 + (cost-1)/4 // a call is seldom as dear as it can be
	return fmt.Sprintf("spent %s %d", b.ThreadID, total), storetest.As(p.store).Report(ctx, b.ThreadID, total, testTime)
}

// reserve takes up to twice what is there, so that half the attempts fail.
func (p *spender) reserve(ctx context.Context, from store.Budget) error {
	child := p.newID()
	err := p.store.Reserve(ctx, child, from.ThreadID, thread.Micros(p.rng.Int64N(2*int64(from.Remaining())+1)), testTime)
	if short := new(store.InsufficientError); errors.As(err, &short) {
		return nil
	}
	p.active = append(p.active, child)
	return err
}

// handOver goes on with a successor of a thread.
func (p *spender) handOver(ctx context.Context, i int) error {
	from, to := p.active[i], p.newID()
	p.active[i] = to
	_, err := storetest.As(p.store).HandOver(ctx, from, to, testTime)
	return err
}

// newID begins with the name of the process.
func (p *spender) newID() thread.ID {
	p.made++
	return thread.ID(fmt.Sprintf("%s.%d", p.self, p.made))
}

// raise asks for up to twice what the thread has, so that many attempts fail.
func (p *spender) raise(ctx context.Context, b store.Budget) error {
	err := storetest.As(p.store).Raise(ctx, b.ThreadID, b.MaxSpend+thread.Micros(p.rng.Int64N(int64(b.MaxSpend)+1)), testTime)
	if short := new(store.InsufficientError); errors.As(err, &short) || errors.Is(err, store.ErrNoBudget) {
		return nil // the parent has too little, or has been settled by whoever started it
	}
	return err
}

// LedgerSurvivesKills lets processes share a budget, kills most of them in
// the middle of whatever they do, settles every thread in random order, and
// holds the ledger to the invariants of the specification and to what the
// processes said they had spent.
func (e Engine) LedgerSurvivesKills(t *testing.T) {
	const (
		processes = 6
		survives  = 60 // operations of a process that is let live
		most      = 6_000_000
	)
	ctx, place := t.Context(), e.Make(t)
	s := e.open(t, place)
	if err := s.OpenRoot(ctx, "root", most, testTime); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(testTime.Unix())))
	players := make([]*Player, processes)
	name := func(i int) thread.ID { return thread.ID(fmt.Sprintf("p%d", i)) }
	for i := range players { // before any of them raises what it has
		if err := s.Reserve(ctx, name(i), "root", most/processes/2, testTime); err != nil {
			t.Fatal(err)
		}
	}
	for i := range players {
		steps := survives
		if i%3 != 0 {
			steps = math.MaxInt
		}
		players[i] = e.Start(t, "spend", place, string(name(i)), strconv.FormatUint(rng.Uint64(), 10), strconv.Itoa(steps))
		players[i].GoAhead(t)
	}
	said := make(map[thread.ID]thread.Micros)
	for i, p := range players {
		if i%3 != 0 {
			for range rng.IntN(survives) {
				Hear(t, said, p.Line())
			}
			p.Kill(t)
		}
	}
	for i, p := range players {
		for line := p.Line(); line != ""; line = p.Line() {
			Hear(t, said, line)
		}
		p.AwaitEnd(t, i%3 != 0)
	}
	e.awaitAlone(t, s)
	e.endAll(t, s, rng)
	e.checkLedger(t, s, said)
}

// Hear notes what a process says it has spent, once that is committed.
func Hear(t *testing.T, said map[thread.ID]thread.Micros, line string) {
	t.Helper()
	spent, ok := strings.CutPrefix(line, "spent ")
	if !ok {
		return
	}
	var id string
	var total int64
	if _, err := fmt.Sscanf(spent, "%s %d", &id, &total); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	said[thread.ID(id)] = thread.Micros(total)
}

// endAll settles every thread of the ledger twice, in random order.
func (e Engine) endAll(t *testing.T, s store.Store, rng *rand.Rand) {
	t.Helper()
	for range 2 {
		budgets := e.everyBudget(t, s)
		rng.Shuffle(len(budgets), func(i, j int) { budgets[i], budgets[j] = budgets[j], budgets[i] })
		for _, b := range budgets {
			if err := storetest.As(s).Settle(t.Context(), b.ThreadID, testTime); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (e Engine) checkLedger(t *testing.T, s store.Store, said map[thread.ID]thread.Micros) {
	t.Helper()
	rows := make(map[thread.ID]store.Budget)
	for _, b := range e.everyBudget(t, s) {
		rows[b.ThreadID] = b
		if b.Active || b.Reserved != 0 || b.Actual > b.MaxSpend {
			t.Errorf("after the end: %+v", b)
		}
		if b.ParentID == "" && b.ThreadID != "root" {
			t.Errorf("%s lost its parent", b.ThreadID)
		}
		_, tree, err := s.Tree(t.Context(), b.ThreadID)
		if err != nil {
			t.Fatal(err)
		}
		if tree.Actual != b.Actual || tree.Reserved != 0 || tree.Active != 0 {
			t.Errorf("tree %+v below %+v", tree, b)
		}
	}
	for id, total := range said {
		if rows[id].Own < total {
			t.Errorf("%s had spent %d, the ledger says %+v", id, total, rows[id])
		}
	}
	if len(said) == 0 || len(rows) < 10 {
		t.Errorf("only %d threads, %d of which spent", len(rows), len(said))
	}
}

func (e Engine) everyBudget(t *testing.T, s store.Store) (all []store.Budget) {
	t.Helper()
	ids, err := e.Budgeted(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		b, err := s.Budget(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}
