package postgres_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// engines are both, with what is committed on the disk when it is told.
func engines(b *testing.B, run func(b *testing.B, st store.Store)) {
	b.Helper()
	b.Run("sqlite", func(b *testing.B) {
		st, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = st.Close() })
		run(b, st)
	})
	b.Run("postgres", func(b *testing.B) {
		c := pgtest.Start(b, pgtest.Options{Durable: true})
		s, err := postgres.Connect(b.Context(), postgres.Options{URL: c.Database(b), Connections: 16})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		run(b, open(b, s, "bench"))
	})
}

// BenchmarkThread is what a thread without a runner costs: registered, queued and
// admitted, claimed, ended. One at a time, and eight at once.
func BenchmarkThread(b *testing.B) {
	engines(b, func(b *testing.B, st store.Store) {
		var number atomic.Int64
		one := func() error {
			in := newThread(fmt.Sprintf("d%d", number.Add(1)), "")
			rec, _, err := store.Register(b.Context(), st, in, nil)
			if err != nil {
				return err
			}
			if _, err = st.Enqueue(b.Context(), rec.ThreadID, 1000, testTime); err != nil {
				return err
			}
			as := storetest.As(st)
			if _, err = as.Apply(b.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, testTime)); err != nil {
				return err
			}
			end, err := store.Finished(rec.ThreadID, thread.Outcome{State: thread.Completed}, nil, testTime)
			if err == nil {
				_, err = as.Apply(b.Context(), end)
			}
			return err
		}
		b.Run("alone", func(b *testing.B) {
			for b.Loop() {
				if err := one(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("8 at once", func(b *testing.B) {
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := one(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	})
}

// running is a thread that runs, and the store as its runner writes.
func running(b *testing.B, st store.Store) (thread.ID, storetest.Any) {
	b.Helper()
	rec, _, err := store.Register(b.Context(), st, newThread("d", ""), nil)
	if err != nil {
		b.Fatal(err)
	}
	as := storetest.As(st)
	if _, err := as.Apply(b.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, testTime)); err != nil {
		b.Fatal(err)
	}
	return rec.ThreadID, as
}

// BenchmarkFencedWrite is one write of a runner, which names its run.
func BenchmarkFencedWrite(b *testing.B) {
	engines(b, func(b *testing.B, st store.Store) {
		id, as := running(b, st)
		turns := 0
		for b.Loop() {
			turns++
			if err := as.RecordCost(b.Context(), id, thread.Cost{Turns: turns}, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWake is the time from before a commit until another connection has noticed it.
func BenchmarkWake(b *testing.B) {
	engines(b, func(b *testing.B, st store.Store) {
		id, as := running(b, st)
		changes := st.Changes(b.Context())
		turns := 0
		for b.Loop() {
			turns++
			if err := as.RecordCost(b.Context(), id, thread.Cost{Turns: turns}, 0); err != nil {
				b.Fatal(err)
			}
			<-changes
		}
	})
}
