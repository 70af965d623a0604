package main_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// addressOfExamples is the database that texts name.
const addressOfExamples = "postgres://rye@db.example/rye?sslmode=verify-full"

// TestMoreThanOneMachine does what the README shows for a team: threads move to a server,
// and those that another machine starts run on a worker.
func TestMoreThanOneMachine(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	source, err := os.ReadFile(readmePath)
	if err != nil {
		t.Fatal(err)
	}
	blocks := codeBlocks(string(source))
	at := slices.IndexFunc(blocks, func(b block) bool { return strings.Contains(b.about, t.Name()) })
	if at < 0 {
		t.Fatal("the README shows nothing of it")
	}
	setup, serve, found := strings.Cut(strings.ReplaceAll(blocks[at].content, addressOfExamples, pgtest.Server(t)), "rye-mcp worker")
	if !found {
		t.Fatalf("it starts no worker:\n%s", blocks[at].content)
	}

	g := newGuided(t, "README")
	g.shell("git init -q && git remote add origin https://git.example/team/app && rye-mcp init", "…", 0)
	g.shell("rye-mcp run hello --input name=Ada", "…", 0)
	g.shell("set -eu\n"+setup, "…", blocks[at].line)
	if moved := g.mustCLI(g.dir, "threads", "list"); !strings.Contains(moved, "hello-") {
		t.Errorf("after the move there are\n%s", moved)
	}

	worker := exec.Command("sh", "-c", "exec rye-mcp worker"+serve)
	worker.Dir, worker.Env, worker.Stderr = g.dir, g.env, t.Output()
	g.noError(worker.Start())
	t.Cleanup(func() { _ = worker.Process.Kill() })
	g.until(func() (bool, string) {
		workers := g.mustCLI(g.dir, "workers", "list")
		return strings.Contains(workers, "8"), "no worker has come: " + workers
	})
	g.shell("rye-mcp run hello --input name=Ada", "…", 0)
	if shown := g.mustCLI(g.dir, "threads", "show", "latest", "--json"); !strings.Contains(shown, `"worker"`) {
		t.Errorf("no worker has run it:\n%s", shown)
	}
	g.noError(worker.Process.Signal(syscall.SIGTERM))
	if err := worker.Wait(); err != nil {
		t.Errorf("asked to end, the worker says %v", err)
	}
}
