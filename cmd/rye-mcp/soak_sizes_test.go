package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// left is what stands on the disk when a soak rests and its threads were deleted.
type left struct {
	folders, renderings []string // of threads, and drafts of renderings
	bytes               map[string]int64
}

// slack is by how much something may be larger than after the first round, in bytes. What
// is remembered of the deleted is bounded, and SQLite uses a log again before it grows.
var slack = map[string]int64{"folders": 2 << 20, "databases": 8 << 20, "logs of databases": 16 << 20, "renderings": 1 << 20, "index": 8 << 20}

// clean deletes every thread, as somebody would who wants none, and mends what the kills
// of the round have left. Of that nothing may be found a second time.
func (s *soak) clean() {
	s.Helper()
	s.mu.Lock()
	s.threads = nil
	s.mu.Unlock()
	for until := time.Now().Add(time.Minute); ; {
		must[tidy.Cleaned](s.steady, "cleanup_threads", args{"older_than": "0s", "dry_run": true})
		done := must[tidy.Cleaned](s.steady, "cleanup_threads", args{"older_than": "0s", "confirm": true})
		if done.Left == 0 && done.Threads == 0 {
			break
		}
		if s.Failed() || time.Now().After(until) {
			s.Fatalf("threads cannot be deleted: %+v", done)
		}
	}
	for again := range 2 {
		r := must[health.Reconciliation](s.steady, "reconcile_threads", args{"apply": true, "all": true})
		if !r.Success || again > 0 && len(r.Findings) > 0 {
			s.Errorf("what disagrees is not mended: %+v", r.Findings)
		}
	}
}

// measure looks at everything that threads write.
func (s *soak) measure() left {
	s.Helper()
	l := left{bytes: map[string]int64{}}
	state := placetest.Dir(s.dir)
	s.sum(state, func(path string, size int64) {
		switch name := filepath.Base(path); {
		case strings.HasSuffix(name, "-wal"):
			l.bytes["logs of databases"] += size
		case strings.HasSuffix(name, ".db"):
			l.bytes["databases"] += size
		case !strings.HasSuffix(name, "-shm"):
			l.bytes["folders"] += size
		}
		if filepath.Base(path) == "thread.json" {
			l.folders = append(l.folders, path)
		}
	})
	s.sum(filepath.Join(s.dir, ".ai", "knowledge"), func(path string, size int64) {
		l.bytes["renderings"] += size
		l.renderings = append(l.renderings, path)
	})
	s.sum(filepath.Join(filepath.Dir(s.dir), "cache"), func(_ string, size int64) { l.bytes["index"] += size })
	return l
}

// sum visits the files below a folder, which may not be there.
func (s *soak) sum(dir string, visit func(path string, size int64)) {
	s.Helper()
	s.noError(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			visit(path, info.Size())
		}
		return nil
	}))
}

// wantFlat fails the test when something has grown since the first round.
func (s *soak) wantFlat(first, now left) {
	s.Helper()
	if len(now.folders)+len(now.renderings) > 0 {
		s.Errorf("of deleted threads the folders %q and the renderings %q are left", now.folders, now.renderings)
	}
	for what, most := range slack {
		if now.bytes[what] > first.bytes[what]+most {
			s.Errorf("%s have grown from %d to %d bytes", what, first.bytes[what], now.bytes[what])
		}
	}
}
