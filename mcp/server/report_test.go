package server_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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

// A client that asks for progress hears each second of a call whose handler reports
// nothing, and of one that has reported something it hears that again.
func TestSilentCallIsToldToGoOn(t *testing.T) {
	t.Parallel()
	rest := server.Tool[countIn, countOut]{
		Name: "rest", Description: "Reports nothing.", Annotations: server.Annotations{Title: "Rest", ReadOnly: true},
		Handle: func(_ context.Context, _ server.Call, in countIn) (countOut, error) {
			<-time.After(time.Duration(in.Pause) * time.Millisecond)
			return countOut{Success: true}, nil
		},
	}
	for _, tt := range []struct {
		name, tool string
		in         countIn
		want       []string
	}{
		{"nothing is reported", "rest", countIn{Pause: 3_500}, []string{"at work for 1 s", "at work for 2 s", "at work for 3 s"}},
		{"nothing for a moment", "rest", countIn{Pause: 1_000}, nil},
		{"reported long ago", "count", countIn{Steps: 2, Pause: 2_500}, []string{"step 1", "step 1", "step 1", "step 2"}},
		{"reports each second by itself", "count", countIn{Steps: 3, Pause: 1_000}, []string{"step 1", "step 2", "step 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				server.Add(s, rest)
				p := servertest.Start(t, s).CallAsync(tt.tool, tt.in)
				var told []string
				for now, more := p.ReadProgress(); more; now, more = p.ReadProgress() {
					told = append(told, now.Message)
				}
				if !slices.Equal(told, tt.want) {
					t.Errorf("told %q, want %q", told, tt.want)
				}
				p.Result()
			})
		})
	}
}
