package rag_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
)

// On a full disk a row is refused with the reason, what is there is found, and nothing is
// taken for damage. A disk that becomes full while codes are written costs their files alone.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !disktest.Isolated(t) {
		return
	}
	disk := disktest.Mount(t, t.TempDir(), "8m")
	full := false
	opts := rag.At(pathIn(disk.Dir), mark).WithTests(smallest, func(step string) {
		if step == "second half" && !full {
			full = true
			disk.Fill()
		}
	})
	opts.Damaged = func(d rag.Damage) { t.Errorf("damaged: %+v", d) }
	x, m := openWith(t, opts), &reference{}
	var rows []rag.Row
	for n := range 40 {
		rows = append(rows, written("disk", n))
		m.store(rows[n])
	}
	store(t, x, rows...)
	if !full {
		t.Fatal("no codes were written")
	}
	sameAnswers(t, x, m)
	var err error
	for n := 100; err == nil && n < 1000; n++ { // the log may have some room of its own
		if _, err = x.Store(t.Context(), []rag.Row{written("disk", n)}); err == nil {
			m.store(written("disk", n))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("stored on a full disk: %v", err)
	}
	sameAnswers(t, x, m)
	disk.Empty()
	m.store(written("disk", 2000))
	store(t, x, written("disk", 2000))
	sameAnswers(t, x, m)
}
