package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/retryafter"
)

func TestWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		header string
		wait   time.Duration
		asked  bool
	}{
		{"7", 7 * time.Second, true},
		{" 7 ", 7 * time.Second, true},
		{"0", 0, true},
		{"-3", 0, false},
		{"9223372036854775807", retryafter.Longest, true},
		{"99999999999999999999999", retryafter.Longest, true},
		{"-99999999999999999999999", 0, false},
		{now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second, true},
		{now.Format(http.TimeFormat), 0, false},
		{now.Add(-time.Hour).Format(http.TimeFormat), 0, false},
		{"Fri, 31 Dec 9999 23:59:59 GMT", retryafter.Longest, true},
		{"", 0, false},
		{"soon", 0, false},
		{"1.5", 0, false},
	} {
		if wait, asked := retryafter.Wait(tt.header, now); wait != tt.wait || asked != tt.asked {
			t.Errorf("%q: %v, %t", tt.header, wait, asked)
		}
	}
}
