// Package longtest says what `go test -short` leaves out, so that the rest is done in two
// minutes on two processors. `go test` runs all of it; `make soak` longer still.
package longtest

import "testing"

// Mark is called by a test that takes some tenths of a second of a processor or more. It skips
// the test under -short.
func Mark(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: go test without -short runs it")
	}
}

// Sample is all there is, and under -short every nth of it, from the first on.
func Sample[T any](all []T, nth int) []T {
	if !testing.Short() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += nth {
		some = append(some, all[i])
	}
	return some
}
