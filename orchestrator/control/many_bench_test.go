package control

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// withFolders is how many threads, the newest, have their folders: as many as a look that
// is not asked for all goes through.
const withFolders = 1000

// BenchmarkRatioThreads compares what manages threads in projects of 10 000 and 100 000
// that have ended with one of 1000.
func BenchmarkRatioThreads(b *testing.B) {
	sizes := []int{1000, 10_000, 100_000}
	crowds := make([]*crowd, len(sizes))
	for i, n := range sizes {
		crowds[i] = newCrowd(b, n)
	}
	for _, tt := range []struct {
		what, durability string
		times            int
		// goal is for how many times as many threads.
		goal func(times int) float64
		do   func(*crowd)
		// before is not measured; it may be nil.
		before func(*crowd)
	}{
		{what: "list", durability: unwritten, times: 50, goal: bounded, do: func(c *crowd) { c.list(view.ListRequest{}, store.DefaultPage) }},
		{what: "list by spend", durability: unwritten, times: 50, goal: bounded, do: func(c *crowd) {
			c.list(view.ListRequest{Sort: store.Sort{By: store.BySpend}}, store.DefaultPage)
		}},
		{what: "list by a text that many have", durability: unwritten, times: 50, goal: bounded, do: func(c *crowd) {
			c.list(view.ListRequest{Text: "work"}, store.DefaultPage)
		}},
		// No index finds a part of a text: so many rows are looked at for a page.
		{what: "page by a text that none has", durability: unwritten, times: 15, goal: scanned, do: func(c *crowd) {
			c.list(view.ListRequest{Text: "nobody has it"}, 0)
		}},
		{what: "health", durability: unwritten, times: 9, goal: bounded, do: (*crowd).health},
		{what: "reconcile", durability: unwritten, times: 7, goal: bounded, do: (*crowd).reconcile},
		{what: "deletion of 1 000", durability: durable, times: 5, goal: bounded, do: (*crowd).cleanup, before: (*crowd).addOld},
	} {
		measured := make([]time.Duration, len(crowds))
		for i, taken := range took(crowds, tt.times, tt.before, tt.do) {
			slices.Sort(taken)
			measured[i] = taken[len(taken)/2]
		}
		for i, n := range sizes[1:] {
			name := fmt.Sprintf("%s with %d 000 threads/with 1 000/%s", tt.what, n/1000, tt.durability)
			b.Run(name, func(b *testing.B) {
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(measured[i+1])/float64(measured[0]), "x-baseline")
				b.ReportMetric(tt.goal(n/sizes[0]), "x-goal")
				b.Logf("%v against %v", measured[i+1], measured[0])
			})
		}
	}
}

const (
	unwritten = "nothing is written"
	durable   = "FULL"
)

// bounded is the goal of what does not depend on how many threads have ended.
func bounded(int) float64 { return 1.5 }

// scanned is the goal of what looks at [store.MaxScanned] threads at most, after a look at
// the first of them. Of very many threads not all of those are in the cache.
func scanned(int) float64 { return 2.5 * store.MaxScanned / 1000 }

// took measures the crowds in turns.
func took(crowds []*crowd, times int, before, do func(*crowd)) [][]time.Duration {
	all := make([][]time.Duration, len(crowds))
	for range times {
		for i, c := range crowds {
			if before != nil {
				before(c)
			}
			began := time.Now()
			do(c)
			all[i] = append(all[i], time.Since(began))
		}
	}
	return all
}

// crowd is a project of many threads that have ended.
type crowd struct {
	*scene

	ctx    context.Context //nolint:containedctx // of the benchmark
	like   store.Restored
	copied int
}

// newCrowd gives a project n threads beside one that has run, of its like.
func newCrowd(b *testing.B, n int) *crowd {
	b.Helper()
	s := newSignedScene(b)
	s.c.Threads.Now, s.c.Threads.Finisher.Now = time.Now, time.Now
	id := s.start("work", "")
	s.order(id, "say hello", "spend 7", "complete")
	<-s.puppet(id).gone
	c := &crowd{scene: s, ctx: b.Context()}
	var err error
	c.like.Record, err = s.c.Threads.Store.Get(c.ctx, id)
	s.noError(err)
	budget, err := s.c.Threads.Store.Budget(c.ctx, id)
	s.noError(err)
	c.like.Budget = &budget
	c.like.Record.RequestKey = ""
	ids := c.copies(n, "work", 0)
	c.folders(ids[:min(n, withFolders)])
	for i := range min(n, withFolders) {
		rec, err := s.c.Threads.Store.Get(c.ctx, ids[i])
		s.noError(err)
		s.noError(s.c.Threads.Finisher.Render(rec))
	}
	return c
}

// copies adds rows and budgets like those of the thread that has run, each older than
// the one before it, and the first older by age than that thread.
func (c *crowd) copies(n int, directive string, age time.Duration) (ids []thread.ID) {
	c.Helper()
	rows := make([]store.Restored, n)
	for i := range rows {
		c.copied++
		rec, budget := c.like.Record, *c.like.Budget
		older := age + time.Duration(c.copied)*time.Millisecond
		rec.ThreadID = thread.NewID(directive, rec.CreatedAt, c.copied+1)
		rec.Directive, rec.CreatedAt, rec.LastUsed = directive, rec.CreatedAt.Add(-older), rec.LastUsed.Add(-older)
		budget.ThreadID = rec.ThreadID
		rows[i] = store.Restored{Record: rec, Budget: &budget}
		ids = append(ids, rec.ThreadID)
	}
	added, err := c.c.Threads.Store.Restore(c.ctx, rows)
	c.noError(err)
	if added.Threads != n || added.Budgets != n {
		c.Fatalf("added %+v", added)
	}
	return ids
}

// folders gives threads the files of the one that has run, each with its own name.
func (c *crowd) folders(ids []thread.ID) {
	c.Helper()
	seal := c.c.Threads.Records.Seal()
	from := c.folder(c.like.Record.ThreadID)
	meta, err := from.ReadMeta(seal)
	c.noError(err)
	transcript, err := os.ReadFile(from.Transcript())
	c.noError(err)
	for _, id := range ids {
		meta.ThreadID, meta.ChainRootID = id, id
		data, err := seal.Encode(meta)
		c.noError(err)
		to := c.folder(id)
		c.noError(to.Make())
		c.noError(os.WriteFile(to.Meta(), data, 0o600))
		c.noError(os.WriteFile(to.Transcript(), transcript, 0o600))
	}
}

func (c *crowd) list(req view.ListRequest, want int) {
	c.Helper()
	list, err := c.c.View.List(c.ctx, req)
	c.noError(err)
	if list.Count != want {
		c.Fatalf("%+v lists %d", req, list.Count)
	}
}

func (c *crowd) health() {
	c.Helper()
	h, err := c.c.Health.Report(c.ctx, health.Request{}, nil)
	c.noError(err)
	if h.ThreadCount != c.copied+1 || h.OrphanedFolders > 0 {
		c.Fatalf("health %+v", h)
	}
}

func (c *crowd) reconcile() {
	c.Helper()
	r, err := c.c.Health.Reconcile(c.ctx, health.ReconcileInput{}, nil)
	c.noError(err)
	if !r.Success || r.Folders < withFolders {
		c.Fatalf("%d folders, %d findings, the first %+v", r.Folders, len(r.Findings), r.Findings[:min(3, len(r.Findings))])
	}
}

// addOld adds 1000 threads that a cleanup takes.
func (c *crowd) addOld() {
	c.Helper()
	c.folders(c.copies(1000, "old", 48*time.Hour))
}

func (c *crowd) cleanup() {
	c.Helper()
	told, err := c.c.Tidy.Cleanup(c.ctx, tidy.CleanupRequest{OlderThan: "24h", Directive: "old", Agreed: true})
	c.noError(err)
	if told.Threads != 1000 {
		c.Fatalf("deleted %+v", told)
	}
}
