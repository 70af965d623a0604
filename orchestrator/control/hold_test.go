package control

import (
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// How long a client is held that names no time: as its user says, else as it is known
// to bear, else as little as any does.
func TestClientWait(t *testing.T) {
	t.Parallel()
	set := config.WaitSettings{Clients: map[string]float64{"codex": 30, "Codex-mcp": 90, "other": 0}}
	for _, tt := range []struct {
		client string
		known  time.Duration
		want   time.Duration
	}{
		{"codex-mcp-client", time.Minute, 90 * time.Second},
		{"codex", time.Minute, 30 * time.Second},
		{"other", time.Minute, 0},
		{"claude-code", time.Hour, time.Hour},
		{"claude-code", 0, ClientWait},
		{"", 0, ClientWait},
	} {
		by := action.Caller{Origin: thread.Origin{Client: tt.client}, Hold: tt.known}
		if got := clientWait(by, set); got != tt.want {
			t.Errorf("%q, known to bear %v: %v, want %v", tt.client, tt.known, got, tt.want)
		}
	}
}

// A time that is named holds, whatever the client bears.
func TestWaitTimeThatIsNamed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	by := action.Caller{Hold: time.Hour}
	asked := 3.0
	for name, want := range map[string]time.Duration{"named": 3 * time.Second, "not named": time.Hour} {
		given := &asked
		if name == "not named" {
			given = nil
		}
		fork, err := waitLimit(s.c.Settings.Begin(), by, given)
		s.noError(err)
		wait, err := s.c.WaitTime(by, given)
		s.noError(err)
		if fork != want || wait != want {
			t.Errorf("%s: a fork waits %v, wait_threads %v, want %v", name, fork, wait, want)
		}
	}
}
