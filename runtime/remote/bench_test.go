package remote_test

import (
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
	f.localAndShipped(b, func(b *testing.B, w *transcript.Writer) {
		for turn := 1; b.Loop(); turn++ {
			for range 20 {
				must(b, w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: turn}))
			}
			must(b, w.Checkpoint(turn))
		}
	})
}

// BenchmarkEvent measures what an event costs that no checkpoint follows.
func BenchmarkEvent(b *testing.B) {
	newFleet(b).localAndShipped(b, func(b *testing.B, w *transcript.Writer) {
		for b.Loop() {
			must(b, w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: 1}))
		}
	})
}

// localAndShipped measures what is written to a transcript on this machine alone, and to
// one that is shipped to the server.
func (f fleet) localAndShipped(b *testing.B, write func(*testing.B, *transcript.Writer)) {
	m := f.machine(b)
	run := thread.NewRun()
	m.registered(b, id, run)
	for name, of := range map[string]records.Thread{"local": local(b.TempDir(), f.seal).Of(id), "shipped": m.By(id, run)} {
		b.Run(name, func(b *testing.B) {
			must(b, of.Prepare())
			w, err := transcript.Open(of.Transcript(), id, transcript.Options{Signer: f.seal.Key()})
			must(b, err)
			write(b, w)
			must(b, w.Close())
		})
	}
}
