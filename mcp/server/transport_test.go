package server_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// overEach runs a test of what is the same over every transport.
func overEach(t *testing.T, test func(t *testing.T, transport servertest.Option)) {
	t.Helper()
	for _, transport := range servertest.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			test(t, servertest.Over(transport))
		})
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, transport servertest.Option) {
		c := servertest.Start(t, newServer(), transport)
		r := c.Call("echo", echoIn{Text: "hi<&>é", Repeat: 2})
		if r.IsError || !strings.Contains(string(r.JSON), `"text":"hi<&>éhi<&>é"`) || !strings.Contains(string(r.JSON), `"client":"servertest 1"`) {
			t.Errorf("result %s, %v", r.JSON, r.Err)
		}
		if r := c.Call("nothing", struct{}{}); r.Err == nil || r.Err.Code != -32602 || !strings.Contains(r.Err.Message, "block, count, echo, fail") {
			t.Errorf("unknown tool = %+v", r.Err)
		}
		if _, err := c.Request("no/such", map[string]any{}); err == nil || err.Code != -32601 {
			t.Errorf("unknown method = %v", err)
		}
	})
}

func TestFaultsOverEachTransport(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, transport servertest.Option) {
		c := servertest.Start(t, newServer(), transport)
		for how, want := range map[string]tool.Code{"fault": tool.CodeNotFound, "panic": tool.CodeInternal, "other": tool.CodeBadArguments} {
			if r := c.Call("fail", failIn{How: how}); r.Err != nil || r.Code() != want {
				t.Errorf("%s = %+v, want code %q", how, r, want)
			}
		}
	})
}

// The first and the last of a burst of reports come, in order and before the
// answer; servertest fails otherwise.
func TestBurstKeepsFirstAndLast(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, transport servertest.Option) {
		c := servertest.Start(t, newServer(), transport)
		for range 50 {
			p := c.CallAsync("count", countIn{Steps: 1000})
			first, _ := p.ReadProgress()
			last := first
			for more, ok := p.ReadProgress(); ok; more, ok = p.ReadProgress() {
				last = more
			}
			if first.Progress != 1 || last.Progress != 1000 {
				t.Fatalf("first %v, last %v", first.Progress, last.Progress)
			}
			p.Result()
		}
	})
}

func TestSlowCallsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, transport servertest.Option) {
		const calls = 50
		s, seen := newBlocking(calls)
		c := servertest.Start(t, s, transport)
		slow := make([]*servertest.Pending, calls)
		for i := range slow {
			slow[i] = c.CallAsync("block", struct{}{})
		}
		for range slow {
			<-seen.started
		}
		if r := c.Call("echo", echoIn{Text: "quick", Repeat: 1}); r.IsError {
			t.Errorf("quick call failed: %s", r.JSON)
		}
		for _, p := range slow {
			p.Cancel()
			err := <-seen.ended
			// To close its connection is all a client without sessions can do.
			if !errors.Is(err, server.ErrRequestCancelled) && !errors.Is(err, server.ErrClientGone) {
				t.Errorf("cause of a cancelled call = %v", err)
			}
		}
	})
}

// Every revision is spoken over every transport.
func TestRevisions(t *testing.T) {
	t.Parallel()
	for _, transport := range []servertest.Transport{servertest.Stdio, servertest.StreamableHTTP, servertest.SSE} {
		for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
			t.Run(string(transport)+" "+revision, func(t *testing.T) {
				t.Parallel()
				c := servertest.Start(t, newServer(), servertest.Over(transport), servertest.Speaking(revision))
				p := c.CallAsync("count", countIn{Steps: 3})
				if _, ok := p.ReadProgress(); !ok {
					t.Error("no progress")
				}
				p.Result()
				if r := c.Call("echo", echoIn{Text: "x"}); !strings.Contains(string(r.JSON), `"protocol":"`+revision+`"`) {
					t.Errorf("result %s, %v", r.JSON, r.Err)
				}
			})
		}
	}
}
