package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// program returns the path of one of PostgreSQL's programs, or skips the test.
func program(t testing.TB, name string) string {
	t.Helper()
	folder, err := programs()
	if err != nil {
		lacking(t, err)
	}
	return filepath.Join(folder, name)
}

// lacking ends a test for which a program is not there.
func lacking(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip("SKIPPED, NOT TESTED: " + err.Error())
}

// programs returns the folder of initdb and postgres. Debian keeps one for each version,
// outside of PATH.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is a good one
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL is not installed (apt-get install postgresql)")
	}
	return filepath.Dir(found[0]), nil
}

func version(initdb string) int {
	number, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb)))) // 0 sorts last
	return number
}
