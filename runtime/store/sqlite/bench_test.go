package sqlite

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

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

func BenchmarkRecordCost(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	id := running(b, s, "d", "")
	for i := 0; b.Loop(); i++ {
		if err := storetest.As(s).RecordCost(b.Context(), id, thread.Cost{Turns: i}, 0); err != nil {
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
