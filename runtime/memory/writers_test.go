package memory_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// writerEnv names the database in a process that only writes; its number follows.
const writerEnv = "RYE_TEST_MEMORY_WRITER"

const (
	writers   = 8
	ownOfEach = 3
)

// TestManyWriters: processes that write at once lose nothing, and what all of them say is
// there once, as said by each.
func TestManyWriters(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if path := os.Getenv(writerEnv); path != "" {
		writeAsOne(t, path, os.Getenv(writerEnv+"_N"))
		return
	}
	path := filepath.Join(t.TempDir(), "memory.db")
	var all []*exec.Cmd
	for n := range writers {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestManyWriters$")
		cmd.Env = append(os.Environ(), writerEnv+"="+path, fmt.Sprintf("%s_N=%d", writerEnv, n))
		cmd.Stderr, cmd.Stdout = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	s := sceneIn(t, path, place.NewSeal(newKey(t, 1), "here"))
	page, err := s.List(t.Context(), entries.Filter{})
	if err != nil || page.Refused != 0 {
		t.Fatalf("%d refused, %v", page.Refused, err)
	}
	shared := 0
	for _, e := range page.Entries {
		if e.Title == "Shared" {
			shared++
			if len(e.Origins) != writers {
				t.Errorf("said by %d", len(e.Origins))
			}
		}
	}
	if shared != 1 || len(page.Entries) != 1+writers*ownOfEach {
		t.Errorf("%d entries, %d of them shared", len(page.Entries), shared)
	}
}

func writeAsOne(t *testing.T, path, n string) {
	s := sceneIn(t, path, place.NewSeal(newKey(t, 1), "here"))
	by := threadWriter("thread-" + n)
	for i := range ownOfEach {
		s.write(by, entries.Discovery, fmt.Sprintf("Own %s %d", n, i), fmt.Sprintf("writer %s has found fact %d", n, i))
		s.write(by, entries.Constraint, "Shared", "every writer knows that the build needs Go 1.26")
	}
}
