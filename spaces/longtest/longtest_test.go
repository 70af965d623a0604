package longtest_test

import (
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestMark: a marked test goes on unless it is to be short.
func TestMark(t *testing.T) {
	t.Parallel()
	wentOn := false
	t.Run("marked", func(t *testing.T) {
		longtest.Mark(t)
		wentOn = true
	})
	if wentOn == testing.Short() {
		t.Errorf("short: %t, and it went on: %t", testing.Short(), wentOn)
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	all := []int{0, 1, 2, 3, 4}
	want := all
	if testing.Short() {
		want = []int{0, 2, 4}
	}
	if got := longtest.Sample(all, 2); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
