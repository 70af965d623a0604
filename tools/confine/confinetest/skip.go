// Package confinetest tells tests whether a system could confine commands, without asking the code
// that is tested: where that finds nothing to confine them with, its tests would all be skipped.
package confinetest

import "testing"

// Skip skips a test because no command was confined, for why. It fails the test where the system
// can do it.
func Skip(t testing.TB, why string) {
	t.Helper()
	if Possible(t.Context(), nil) {
		t.Fatalf("this system can confine commands, and none was confined: %s", why)
	}
	t.Skipf("this system confines no commands: %s", why)
}
