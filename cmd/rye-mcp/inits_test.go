package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every thread is a process of its own, which initializes every package. Ours leave
// what not all of them need to who needs it first: see [sync.OnceValue].
const (
	mostOfInit  = 4 << 10 // bytes that a package may allocate
	mostOfTests = 256 << 10
)

// TestInits: no package of ours makes more than a few words before main.
func TestInits(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	ours := 0
	for line := range strings.Lines(trace.String()) {
		pkg, rest, _ := strings.Cut(strings.TrimPrefix(line, "init "), " @")
		if !strings.HasPrefix(pkg, module) {
			continue
		}
		most := mostOfInit
		if strings.HasSuffix(pkg, "_test") { // ours: it is every rye-mcp of the tests
			most = mostOfTests
		}
		ours++
		var at, took float64
		var size, allocations int
		if _, err := fmt.Sscanf(rest, "%f ms, %f ms clock, %d bytes, %d allocs", &at, &took, &size, &allocations); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if size > most {
			t.Errorf("%s allocates %d bytes before main", strings.TrimPrefix(pkg, module), size)
		}
	}
	if ours < 10 {
		t.Errorf("only %d packages of ours in the trace:\n%s", ours, trace.String())
	}
}
