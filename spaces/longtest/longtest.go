// Package longtest says how much of the tests runs. `go test -short` runs what is done in two
// minutes on two processors, `go test` what finds most in six, and a soak all of it.
package longtest

import (
	"os"
	"slices"
	"testing"
)

// SoakVariable names the environment variable that asks for a soak and says how many
// minutes of load it is.
const SoakVariable = "RYE_SOAK_MINUTES"

// Soak reports whether tests of load and faults are to leave nothing out.
func Soak() bool { return os.Getenv(SoakVariable) != "" }

// Mark is called by a test that takes some tenths of a second of a processor or more. It skips
// the test under -short.
func Mark(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: go test without -short runs it")
	}
}

// Sample is all there is, and under -short every nth of it.
func Sample[T any](all []T, nth int) []T {
	if !testing.Short() {
		return all
	}
	return Every(all, nth)
}

// Every is every nth, from the first on.
func Every[T any](all []T, nth int) (some []T) {
	for chunk := range slices.Chunk(all, nth) {
		some = append(some, chunk[0])
	}
	return some
}
