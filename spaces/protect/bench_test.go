package protect

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkOf is what a walk costs for each file.
func BenchmarkOf(b *testing.B) {
	dir := b.TempDir()
	m := In(dir, filepath.Join(dir, "home"))
	info, err := os.Stat(dir)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "src", "deep", "folder", "file.go")
	b.ReportAllocs()
	for b.Loop() {
		if m.Of(path, info) != Writing {
			b.Fatal("it is protected")
		}
	}
}

// BenchmarkIn is what each call of a file tool costs.
func BenchmarkIn(b *testing.B) {
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		In(dir, filepath.Join(dir, "home"))
	}
}
