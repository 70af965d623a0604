package remote_test

import (
	"errors"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// BenchmarkTurn measures what a turn of 20 events costs that ends in a checkpoint: where
// it is kept on this machine alone, and where it is shipped to a server that syncs as well.
func BenchmarkTurn(b *testing.B) {
	f := newFleet(b)
	f.url = pgtest.Start(b, pgtest.Options{Durable: true}).Database(b)
	m := f.machine(b)
	run := thread.NewRun()
	m.registered(b, id, run)
	for name, of := range map[string]records.Thread{"local": local(b.TempDir(), f.seal).Of(id), "shipped": m.By(id, run)} {
		b.Run(name, func(b *testing.B) {
			must(b, of.Prepare())
			w, err := transcript.Open(of.Transcript(), id, transcript.Options{Signer: f.seal.Key()})
			must(b, err)
			for turn := 1; b.Loop(); turn++ {
				for range 20 {
					must(b, w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: turn}))
				}
				must(b, w.Checkpoint(turn))
			}
			must(b, errors.Join(w.Close()))
		})
	}
}

// BenchmarkEvent measures what an event costs that no checkpoint follows.
func BenchmarkEvent(b *testing.B) {
	f := newFleet(b)
	m := f.machine(b)
	run := thread.NewRun()
	m.registered(b, id, run)
	for name, of := range map[string]records.Thread{"local": local(b.TempDir(), f.seal).Of(id), "shipped": m.By(id, run)} {
		b.Run(name, func(b *testing.B) {
			must(b, of.Prepare())
			w, err := transcript.Open(of.Transcript(), id, transcript.Options{Signer: f.seal.Key()})
			must(b, err)
			for b.Loop() {
				must(b, w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: 1}))
			}
			must(b, w.Close())
		})
	}
}
