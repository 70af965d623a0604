package worker_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets each property have few cases, as each asks a server.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
