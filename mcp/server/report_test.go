package server_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

func TestProgressComesInOrderAndBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// servertest fails when progress comes late or does not grow.
		const calls, steps = 100, 10
		c := servertest.Start(t, newServer())
		var pending []*servertest.Pending
		for range calls {
			pending = append(pending, c.CallAsync("count", countIn{Steps: steps, Pause: 150}))
		}
		for _, p := range pending {
			for i := range steps {
				got, ok := p.ReadProgress()
				want := server.Progress{Progress: float64(i + 1), Total: steps, Message: fmt.Sprintf("step %d", i+1)}
				if !ok || got != want {
					t.Fatalf("progress %d = %+v, %v; want %+v", i, got, ok, want)
				}
			}
			if late, ok := p.ReadProgress(); ok {
				t.Errorf("one more: %+v", late)
			}
			if r := p.Result(); r.IsError {
				t.Errorf("result: %s", r.JSON)
			}
		}
	})
}
