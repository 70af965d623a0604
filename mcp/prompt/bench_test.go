package prompt_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRatioPrompts: how long a list of prompts takes where there are many
// directives; most of them are found and left out.
func BenchmarkRatioPrompts(b *testing.B) {
	h := newHouse(b)
	for i := range 1000 {
		h.put(h.project, fmt.Sprintf("group%d/d%d", i%20, i), "Does something", "", "Do it.")
	}
	h.sign()
	list := best(9, func() {
		if offered, err := h.List(context.Background()); err != nil || len(offered) != 50 {
			b.Fatalf("%d prompts, %v", len(offered), err)
		}
	})
	least := best(9, func() { h.readAll(b) })
	b.Run("prompts of 1 000 signed directives/listing their files and reading them/nothing is written", func(b *testing.B) {
		b.ReportMetric(float64(list)/float64(least), "x-baseline")
		b.ReportMetric(4, "x-goal")
		b.Logf("%v against %v", list, least)
	})
}

// readAll reads the directives of the project.
func (h *house) readAll(b *testing.B) {
	b.Helper()
	root := filepath.Join(h.project, ".ai", "directives")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// best is the shortest of some times.
func best(times int, do func()) time.Duration {
	shortest := time.Hour
	for range times {
		began := time.Now()
		do()
		shortest = min(shortest, time.Since(began))
	}
	return shortest
}
