// Package recordstest holds implementations of [records.Records] against what that
// promises.
package recordstest

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Subject is an implementation, in which no thread has left anything.
type Subject struct {
	records.Records
	// Hammer is a process that calls [Hammer] on these records.
	Hammer *exec.Cmd
	// Blind are the same records without a seal.
	Blind records.Records
}

// Run runs the suite. Open is called for each group.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for name, group := range map[string]func(*testing.T, Subject){
		"Meta": meta, "MetaIsNeverHalf": metaIsNeverHalf, "Blind": blind,
		"Transcript": transcripts, "Compressed": compressed, "TranscriptIsReadAsItGrows": growing, "Sizes": sizes,
		"Unknown": unknown, "Hostile": hostile, "Artifacts": artifacts, "Capabilities": capabilities, "Found": found, "Leftovers": leftovers, "Whole": whole, "Gone": gone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group(t, open(t))
		})
	}
}

const (
	one   thread.ID = "work/one-1772357400"
	other thread.ID = "other-1772357400"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// prepared are the records of a thread that has a place for them.
func prepared(t testing.TB, s records.Records, id thread.ID) records.Thread {
	t.Helper()
	of := s.Of(id)
	must(t, errors.Join(of.Check(), of.Prepare(), of.Prepare()))
	return of
}

func metaOf(id thread.ID, turns int) thread.Meta {
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	return thread.Meta{
		ThreadID: id, Kind: thread.KindDirective, Directive: "work/one", Status: thread.Running, CreatedAt: at, UpdatedAt: at,
		Inputs: map[string]any{"text": strings.Repeat("Zoë ", turns%1000)}, Cost: thread.Cost{Turns: turns},
	}
}
