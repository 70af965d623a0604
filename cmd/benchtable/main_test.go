package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	const in = `goos: linux
pkg: example
BenchmarkRatioWait/wait_wake-up/a_ping/synced_to_disk-2   	       1	         0 ns/op	         12.345 x-baseline	        10.00 x-goal
BenchmarkRatioStart
    a log
BenchmarkRatioMemory/memory_of_a_thread/proportional/-16 	       1	         5.100 MB	         6.000 MB-goal
BenchmarkRatioTurn/a_turn/the_least/-2 1 0 ns/op 2.5 x-baseline 1.6789 x-linked 1.5 x-goal
BenchmarkRatioTime/processor_time/start_to_end/-2 1 30 ms 8.1 ms-floor 12.25 ms-linked 25 ms-goal
PASS
`
	const want = `a machine

| what | against | measured | at most | durability | |
|---|---|---|---|---|---|
| wait wake-up | a ping | 12.3 x | 10 x | synced to disk | over |
| memory of a thread | proportional | 5.1 MB | 6 MB |  | ok |
| a turn | the least; with the required modules linked: 1.68 x | 2.5 x | 1.5 x |  | over |
| processor time | start to end; the least: 8.1 ms; with the required modules linked: 12.2 ms | 30 ms | 25 ms |  | over |
`
	rows, err := read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := write(&out, "a machine", rows); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestNoTable(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"--- FAIL: BenchmarkRatioStart", "FAIL	example	0.1s", "FAIL	example [build failed]",
		"BenchmarkRatioPlain-2	1	0.5 x-baseline	0.1 x-goal",
		"BenchmarkRatioNoGoal/a/b/c-2	1	0.5 x-baseline",
		"BenchmarkRatioNoMeasure/a/b/c-2	1	0.5 x-goal",
	} {
		if rows, err := read(strings.NewReader(line + "\n")); err == nil {
			t.Errorf("%q gives %v", line, rows)
		}
	}
}
