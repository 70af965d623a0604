package crowdtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// family is processes whose budgets come out of each other's, generation below
// generation.
type family struct {
	*testing.T
	Engine

	store   store.Store
	place   string
	rng     *rand.Rand
	players []*Player // in the order of their names: parents first
	said    map[thread.ID]thread.Micros
}

// generations and width of a family: p0 and p1 below the root, p2 below p0, p3
// below p1, and so on.
const (
	generations = 3
	width       = 2
)

// Steps of a process of a family that are heard before it is killed, at most, and those
// that each may take from kill to kill, so that it is killed amid them.
const (
	heard   = 20
	allowed = 2 * heard
)

func (f *family) name(i int) thread.ID { return thread.ID(fmt.Sprintf("p%d", i)) }

func (f *family) begin(most thread.Micros) {
	f.Helper()
	if err := f.store.OpenRoot(f.Context(), "root", most, testTime); err != nil {
		f.Fatal(err)
	}
	share := most
	for i := range generations * width {
		parent := thread.ID("root")
		if i >= width {
			parent = f.name(i - width)
		}
		if i%width == 0 {
			share /= width + 1
		}
		if err := f.store.Reserve(f.Context(), f.name(i), parent, share, testTime); err != nil {
			f.Fatal(err)
		}
	}
	for i := range generations * width { // from here on the parents spend too
		f.players = append(f.players, f.Start(f.T, "spend", f.place, string(f.name(i)),
			strconv.FormatUint(f.rng.Uint64(), 10), strconv.Itoa(math.MaxInt)))
	}
}

// settleDead does what recovery does for a process that is gone: it settles the
// budgets that this had made, in any order, while others go on.
func (f *family) settleDead(i int) {
	f.Helper()
	mine := string(f.name(i))
	var dead []thread.ID
	for _, b := range f.everyBudget(f.T, f.store) {
		if id := string(b.ThreadID); id == mine || strings.HasPrefix(id, mine+".") {
			dead = append(dead, b.ThreadID)
		}
	}
	f.rng.Shuffle(len(dead), func(i, j int) { dead[i], dead[j] = dead[j], dead[i] })
	for _, id := range dead {
		if err := storetest.As(f.store).Settle(f.Context(), id, testTime); err != nil {
			f.Fatal(err)
		}
	}
}

// LedgerOfFamilies kills processes of a tree of budgets in any order and at
// any point. Each time the ledger is whole: it holds the invariants, and can be
// made again from what each thread has spent by itself.
func (e Engine) LedgerOfFamilies(t *testing.T) {
	const most = 9_000_000
	seeds := uint64(2) // a sample
	if longtest.Soak() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			place := e.Make(t)
			f := &family{
				T: t, Engine: e, store: e.open(t, place), place: place, rng: rand.New(rand.NewPCG(seed, 7)), said: map[thread.ID]thread.Micros{},
			}
			f.begin(most)
			order := f.rng.Perm(len(f.players))
			for n, i := range order {
				for _, living := range order[n:] {
					f.players[living].Allow(t, allowed)
				}
				for range f.rng.IntN(heard) {
					Hear(t, f.said, f.players[i].Line())
				}
				f.players[i].Kill(t)
				for line := f.players[i].Line(); line != ""; line = f.players[i].Line() {
					Hear(t, f.said, line)
				}
				f.players[i].AwaitEnd(t, true)
				if n == len(f.players)-1 { // nobody writes, and not everything is settled
					e.awaitAlone(t, f.store)
					e.checkRestored(t, e.everyBudget(t, f.store))
				}
				f.settleDead(i)
				e.checkLive(t, f.store, most)
			}
			e.endAll(t, f.store, f.rng)
			e.checkLedger(t, f.store, f.said)
		})
	}
}

// checkLive checks what holds at any time, while processes spend.
func (e Engine) checkLive(t *testing.T, s store.Store, most thread.Micros) {
	t.Helper()
	root, err := s.Budget(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range e.everyBudget(t, s) {
		if b.Actual < 0 || b.Reserved < 0 || b.Actual+b.Reserved > b.MaxSpend {
			t.Errorf("over-committed: %+v", b)
		}
	}
	_, tree, err := s.Tree(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	if tree.Actual > most || tree.Actual < root.Actual {
		t.Errorf("tree %+v of %+v", tree, root)
	}
}

// checkRestored makes the ledger again in another place from what threads have
// spent by themselves, and expects the same rows.
func (e Engine) checkRestored(t *testing.T, want []store.Budget) {
	t.Helper()
	s := e.open(t, e.Make(t))
	var rows []store.Restored
	for _, b := range want {
		rec := thread.Record{
			ThreadID: b.ThreadID, Kind: thread.KindDirective, Directive: "d", Name: "d", Status: thread.Running,
			CreatedAt: testTime, UpdatedAt: testTime, LastUsed: testTime,
		}
		bare := b
		bare.Actual, bare.Reserved = 0, 0
		rows = append(rows, store.Restored{Record: rec, Budget: &bare})
	}
	done, err := s.Restore(t.Context(), rows)
	if err != nil || len(done.Refused) > 0 {
		t.Fatalf("restored %+v, %v", done, err)
	}
	got := e.everyBudget(t, s)
	if len(got) != len(want) {
		t.Fatalf("%d budgets restored of %d", len(got), len(want))
	}
	for i, b := range got {
		if b.Actual != want[i].Actual || b.Reserved != want[i].Reserved || b.Active != want[i].Active || b.ParentID != want[i].ParentID {
			t.Errorf("restored %+v, was %+v", b, want[i])
		}
	}
}
