package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// numbers names the numbers from 1 to its parameter.
const numbers = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "

// BenchmarkOpen is what the store adds to the start of every thread process.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	open(b, dir, Options{})
	for b.Loop() {
		s, err := Open(b.Context(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRegister registers children of one parent in one second.
func BenchmarkRegister(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	n := newThread("w", running(b, s, "parent", ""))
	for b.Loop() {
		mustRegister(b, s, n)
	}
}

func BenchmarkReserve(b *testing.B) {
	for _, siblings := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("siblings=%d", siblings), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{})
			ctx := b.Context()
			if err := s.OpenRoot(ctx, "root", 1<<40, testTime); err != nil {
				b.Fatal(err)
			}
			_, err := s.ledger.writer.ExecContext(ctx, numbers+`INSERT INTO budgets (thread_id, parent_id, max_spend, created_at, updated_at)
				SELECT 'sibling-' || i, 'root', 1, 1, 1 FROM n`, siblings)
			if err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				if err := s.Reserve(ctx, thread.ID(fmt.Sprintf("child-%d", i)), "root", 1, testTime); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRecordCost(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	id := running(b, s, "d", "")
	for i := 0; b.Loop(); i++ {
		if err := s.RecordCost(b.Context(), id, thread.Cost{Turns: i}, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	id := running(b, s, "d", "")
	for b.Loop() {
		if _, err := s.Get(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList reads the newest 50 of 100 000 threads.
func BenchmarkList(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	_, err := s.registry.writer.ExecContext(b.Context(), numbers+`INSERT INTO threads (thread_id, kind, directive, created_at, updated_at, last_used)
		SELECT 't-' || i, 'directive', 't', 1000 + i, 1, 1 FROM n`, 100_000)
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]store.Filter{
		"all": {}, "states": {States: []thread.State{thread.Created, thread.Running}}, "directive": {Directive: "t"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if rows, _, err := s.List(b.Context(), f); err != nil || len(rows) != store.DefaultPage {
					b.Fatalf("%d rows, %v", len(rows), err)
				}
			}
		})
	}
}

// BenchmarkWake is the time from a commit in one store until a listener of
// another has seen it, the commit included.
func BenchmarkWake(b *testing.B) {
	dir := b.TempDir()
	writer, reader := open(b, dir, Options{}), open(b, dir, Options{Poll: time.Hour})
	ctx, cancel := context.WithCancel(b.Context())
	id := running(b, writer, "d", "")
	seen, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		wake := reader.Changes(ctx)
		for turn := 0; ; {
			rec, err := reader.Get(ctx, id)
			if ctx.Err() != nil {
				return
			}
			for ; turn < rec.Cost.Turns || err != nil; turn++ {
				seen <- err
			}
			<-wake
		}
	}()
	for turn := 1; b.Loop(); turn++ {
		if err := writer.RecordCost(ctx, id, thread.Cost{Turns: turn}, 0); err != nil {
			b.Fatal(err)
		}
		if err := <-seen; err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-ended
}
