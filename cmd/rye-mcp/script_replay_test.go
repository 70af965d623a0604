package main_test

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/runtime/recording"
)

// fingerprintOf sets a variable to the fingerprint of the key that has signed a recording.
func fingerprintOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fingerprint VARIABLE FILE")
	}
	r, err := recording.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Setenv(args[0], r.Signer.Fingerprint())
}
