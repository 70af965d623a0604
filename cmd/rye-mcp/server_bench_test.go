package main_test

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// BenchmarkRatioServer measures threads that are kept on a PostgreSQL server of this
// machine, which its client has started there or a worker of this machine runs, against
// those that are kept in files. Both tell only what is on the disk.
func BenchmarkRatioServer(b *testing.B) {
	program := build(b, ".")
	prepare := [][]string{{"init"}, {"sign", "--type", "directive", "work"}}
	files := newSide(b, program, 2, prepare...)
	files.warm()
	for _, with := range []string{"PostgreSQL", "PostgreSQL and a worker"} {
		c := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"shared_buffers": "128MB", "autovacuum": "on"}})
		there := newSideWith(b, program, 2, []string{storeurl.Variable + "=" + c.Database(b)}, prepare...)
		if with != "PostgreSQL" {
			there.worker(program)
		}
		there.warm()
		row(b, "call to first request at the model, "+with, "SQLite", onDisk, 1.5, func(*testing.B) float64 {
			return ratio(25, there.toRequest, files.toRequest)
		})
		row(b, "thread of two turns, "+with, "SQLite", onDisk, 2, func(*testing.B) float64 {
			return ratio(15, there.toResult, files.toResult)
		})
	}
}

// warm opens the project, and makes the state.
func (s *side) warm() {
	s.p.Helper()
	s.finish([]thread.ID{s.start()})
	s.model.take()
}

// toRequest is from the call that starts a thread to its first request at the model.
func (s *side) toRequest() time.Duration {
	s.p.Helper()
	began := time.Now()
	s.finish([]thread.ID{s.start()})
	return s.model.take()[0].Sub(began)
}

// toResult is from the call that starts a thread to its result.
func (s *side) toResult() time.Duration {
	s.p.Helper()
	began := time.Now()
	s.finish([]thread.ID{s.start()})
	return time.Since(began)
}

// worker runs the threads that are started on this side.
func (s *side) worker(program string) {
	s.p.Helper()
	cmd := exec.Command(program, "worker", "--name", "bench", "--slots", "8")
	cmd.Dir, cmd.Env = s.p.dir, s.p.env
	out, err := cmd.StdoutPipe()
	s.p.noError(err)
	s.p.noError(cmd.Start())
	s.p.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "worker bench: 8 slots") {
		s.p.Fatalf("the worker says %q, %v", line, err)
	}
}
