package main_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Benchmarks whose name begins with BenchmarkRatio are the rows of the table
// that "make bench" prints. The name of their one sub-benchmark says what is
// measured / against what / how durable it is, and the metrics are x-baseline
// with x-goal, or MB with MB-goal. Each does its own repeating, alternates
// between the two sides, and compares medians, so once is enough.

// onDisk is the durability of what a thread's start writes: SQLite's synchronous
// FULL.
const onDisk = "FULL"

// row runs a benchmark as one row of the table. Measure returns the ratio.
func row(b *testing.B, what, against, durability string, goal float64, measure func(b *testing.B) float64) {
	b.Run(what+"/"+against+"/"+durability, func(b *testing.B) {
		var ratio float64
		for b.Loop() {
			ratio = measure(b)
		}
		b.ReportMetric(0, "ns/op") // of both sides together, which means nothing
		b.ReportMetric(ratio, "x-baseline")
		b.ReportMetric(goal, "x-goal")
	})
}

// ratio measures two things in turns and compares their medians.
func ratio(times int, ours, baseline func() time.Duration) float64 {
	each := medians(times, baseline, ours)
	return float64(each[1]) / float64(each[0])
}

// medians measures things in turns, each so many times, and returns the median of each.
func medians(times int, things ...func() time.Duration) []time.Duration {
	took := make([][]time.Duration, len(things))
	for range times {
		for i, thing := range things {
			took[i] = append(took[i], thing())
		}
	}
	each := make([]time.Duration, len(things))
	for i := range took {
		each[i] = median(took[i])
	}
	return each
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkRatioFirstCall measures from the moment before a thread's process is
// started until its first call reaches the model.
func BenchmarkRatioFirstCall(b *testing.B) {
	row(b, "process start to first model call of a thread", "start of the same binary with version", onDisk, 3, func(b *testing.B) float64 {
		p := newPlace(b, fmt.Sprintf(loaded, 10))
		env, steps := p.trace()
		h := p.serve(env...)
		toFirstCall := ratio(25, func() time.Duration {
			if _, err := fork(h, "brief"); err != nil {
				b.Fatal(err)
			}
			return p.model.lastCall().Sub(lastStart(b, steps()))
		}, func() time.Duration {
			version := exec.Command(p.program, "version")
			version.Env = p.env
			began := time.Now()
			if err := version.Run(); err != nil {
				b.Fatal(err)
			}
			return time.Since(began)
		})
		h.close()
		p.wantRest(h)
		return toFirstCall
	})
}

// lastStart is when the newest process was about to be started.
func lastStart(b *testing.B, steps []reached) time.Time {
	b.Helper()
	for _, r := range slices.Backward(steps) {
		if r.crash == "queue.admitted" || r.crash == "start.queued" {
			return r.at
		}
	}
	b.Fatal("no process was started")
	return time.Time{}
}

// build compiles a program of this module without what tests add to it, and without
// cgo, as it is published (cmd/dist): the start of a C library takes a twelfth of the
// processor time of a short thread.
func build(b *testing.B, pkg string, flags ...string) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "program")
	cmd := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-o", program}, flags, []string{pkg})...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program
}

const listTools = `{"jsonrpc":"2.0","id":"tools","method":"tools/list","params":{}}`

// BenchmarkRatioToolsList measures from the start of a server until it has
// listed its tools.
func BenchmarkRatioToolsList(b *testing.B) {
	row(b, "stdio start to tools list", "a bare mcp-go server", "nothing is written", 2, func(b *testing.B) float64 {
		p := newPlace(b, fmt.Sprintf(loaded, 10))
		rye, bare := build(b, "."), build(b, "./testdata/bare")
		list := func(program string, arguments ...string) func() time.Duration {
			return func() time.Duration {
				began := time.Now()
				w := p.wire(program, arguments...)
				w.say(listTools)
				w.hear()
				took := time.Since(began)
				w.end()
				return took
			}
		}
		return ratio(25, list(rye, "--stdio"), list(bare))
	})
}

// BenchmarkRatioStatus measures get_status of a thread that has ended.
func BenchmarkRatioStatus(b *testing.B) {
	row(b, "round trip of a status", "a bare mcp-go echo", "nothing is written", 1.5, func(b *testing.B) float64 {
		p := newPlace(b, fmt.Sprintf(loaded, 10))
		p.program = build(b, ".")
		h := p.serve()
		ended, err := fork(h, "brief")
		if err != nil {
			b.Fatal(err)
		}
		h.close()
		rye, bare := p.wire(p.program, "--stdio"), p.wire(build(b, "./testdata/bare"))
		call := func(w *wire, tool, argument string) func() time.Duration {
			line := fmt.Sprintf(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":%q,"arguments":{%s}}}`, tool, argument)
			return func() time.Duration {
				began := time.Now()
				w.say(line)
				w.hear()
				return time.Since(began)
			}
		}
		status := call(rye, "get_status", fmt.Sprintf(`"thread_id":%q`, ended.ThreadID))
		status() // opens the project
		defer rye.end()
		defer bare.end()
		return ratio(500, status, call(bare, "echo", fmt.Sprintf(`"text":%q`, ended.ThreadID)))
	})
}

// BenchmarkRatioMemory measures the proportional set size of threads that are
// alive at the same time and wait for their model: a thread that lasts gives back
// what its start has left after three seconds (package gc). Only Linux tells.
func BenchmarkRatioMemory(b *testing.B) {
	const alive, settled = 50, 4 * time.Second
	b.Run("memory of a live thread, 50 alive/proportional set size/", func(b *testing.B) {
		var each float64
		for b.Loop() {
			p := newPlace(b, fmt.Sprintf(loaded, alive))
			p.program = build(b, ".")
			h := p.serve()
			var (
				pids []int
				ids  []thread.ID
			)
			for range alive {
				started, err := start(h, "slow")
				p.noError(err)
				pids, ids = append(pids, started.PID), append(ids, started.ThreadID)
			}
			p.wantCalls(alive)
			<-time.After(settled)
			var sum float64
			for _, pid := range pids {
				sum += proportional(b, pid)
			}
			each = sum / alive
			p.model.release()
			wantCompleted(h, ids)
			h.close()
			p.wantRest(h)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(each, "MB")
		b.ReportMetric(6, "MB-goal")
	})
}

// proportional is the proportional set size of a process in MB.
func proportional(b *testing.B, pid int) float64 {
	b.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Skip(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "Pss:"); found {
			var kib float64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				b.Fatal(err)
			}
			return kib * 1024 / 1e6
		}
	}
	b.Fatal("no Pss in smaps_rollup")
	return 0
}
