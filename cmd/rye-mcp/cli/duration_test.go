package cli

import (
	"strings"
	"testing"
	"time"
)

// TestDuration holds that flags about time take what ages are written as.
func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "90s": 90 * time.Second, "0": 0, "1.5s": 1500 * time.Millisecond, "20ms": 20 * time.Millisecond} {
		var got time.Duration
		if err := asDuration(&got, time.Hour).Set(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "3x", "d"} {
		got := time.Duration(0)
		if err := asDuration(&got, time.Hour).Set(text); err == nil || !strings.Contains(err.Error(), "such as 90s") || got != time.Hour {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}
