package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every thread is a process of its own, which initializes every package. Ours make
// what not all of them need when it is first needed: see [sync.OnceValue].
const (
	mostOfInit  = 4 << 10 // bytes that a package may allocate
	mostOfTests = 256 << 10
	mostOfOther = 256 << 10 // a package of another module
)

// dearest compiles the meta-schemas of five drafts before main, and is required.
const dearest = "github.com/santhosh-tekuri/jsonschema/v5"

// TestInits: no package of ours makes more than a few words before main, and no other one
// so much that each thread would notice: a new dependency may.
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
		pkg, rest, traced := strings.Cut(strings.TrimPrefix(line, "init "), " @")
		most := mostOfInit
		switch {
		case !traced, pkg == dearest:
			continue
		case !strings.HasPrefix(pkg, module):
			most = mostOfOther
		case strings.HasSuffix(pkg, "_test"): // ours: it is every rye-mcp of the tests
			most = mostOfTests
			ours++
		default:
			ours++
		}
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
