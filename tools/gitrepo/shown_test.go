package gitrepo

import (
	"strings"
	"testing"
)

// A long line is cut between characters.
func TestShownCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	line := "a" + strings.Repeat("é", maxLine)
	want := line[:maxLine-1] + "… [line cut, 4001 bytes]"
	if got := Shown(line); got != want {
		t.Errorf("ends with %q", got[maxLine-10:])
	}
}
