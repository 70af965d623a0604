package control

import (
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/action"
)

// The bound of a wait depends on its caller, and on nothing that a model says.
func TestWaitTime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "wait_threads: {default_timeout: 100, max_timeout: 200}\n")
	thread, person, client := action.Caller{InThread: true}, action.Caller{Person: true}, action.Caller{By: "MCP client"}
	asked := func(seconds float64) *float64 { return &seconds }
	for _, tt := range []struct {
		by    action.Caller
		asked *float64
		want  time.Duration
	}{
		{thread, nil, 100 * time.Second},
		{thread, asked(0), 0},
		{thread, asked(300), 200 * time.Second},
		{client, nil, ClientWait},
		{client, asked(150), 150 * time.Second},
		{client, asked(300), 200 * time.Second},
		{person, asked(300), 300 * time.Second},
		{person, nil, 365 * 24 * time.Hour},
	} {
		if got, err := s.c.WaitTime(tt.by, tt.asked); err != nil || got != tt.want {
			t.Errorf("%+v waits %s, %v; want %s", tt.by, got, err, tt.want)
		}
	}
}
