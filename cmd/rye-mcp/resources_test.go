package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// follower is what a client is told of resources.
type follower struct {
	*place
	h    *host
	stop func() // listening

	mu   sync.Mutex
	told []string
}

func (p *place) follow(h *host) *follower {
	f := &follower{place: p, h: h}
	h.client.OnNotification(func(n mcp.JSONRPCNotification) {
		raw, err := json.Marshal(n.Params)
		var params struct{ URI string }
		if err == nil {
			err = json.Unmarshal(raw, &params)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.told = append(f.told, fmt.Sprint(n.Method, " ", params.URI))
		if err != nil {
			f.told = append(f.told, err.Error())
		}
	})
	return f
}

// listen has the client told of the list and of these resources, in place of those before.
func (f *follower) listen(uris ...string) {
	f.Helper()
	if f.stop != nil {
		f.stop()
	}
	var err error
	f.stop, err = f.h.client.ListenAsync(f.Context(), mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: uris}, func(err error) {
		f.Errorf("listen: %v", err)
	})
	f.noError(err)
	f.await("notifications/subscriptions/acknowledged ")
}

// await waits until the client was told of all of these, and forgets them.
func (f *follower) await(want ...string) {
	f.Helper()
	f.until(func() (bool, string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, w := range want {
			if !slices.Contains(f.told, w) {
				return false, fmt.Sprintf("told of %q, want %q of %q", f.told, w, want)
			}
		}
		f.told = nil
		return true, ""
	})
}

func (f *follower) read(uri string) string {
	f.Helper()
	var request mcp.ReadResourceRequest
	request.Params.URI = uri
	result, err := f.h.client.ReadResource(context.Background(), request)
	f.noError(err)
	raw, err := json.Marshal(result.Contents)
	f.noError(err)
	return string(raw)
}

func updated(uri string) string { return "notifications/resources/updated " + uri }

// TestResourcesFollowThreads: a client follows threads of processes that work, are killed
// and end, in state that is replaced meanwhile. It is told of each, and what it reads then
// says so.
func TestResourcesFollowThreads(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, fmt.Sprintf(loaded, 10))
	h := p.serve()
	f := p.follow(h)
	f.listen("rye://threads")
	killed, err := start(h, "slow")
	p.noError(err)
	p.wantCalls(1)
	f.await("notifications/resources/list_changed ", updated("rye://threads"))
	of := func(id thread.ID, part string) string { return "rye://threads/" + string(id) + "/" + part }
	f.listen("rye://threads", of(killed.ThreadID, "result"), of(killed.ThreadID, "transcript"))
	process, err := os.FindProcess(killed.PID)
	p.noError(err)
	p.noError(process.Signal(syscall.SIGKILL))
	f.await(updated(of(killed.ThreadID, "result")), updated(of(killed.ThreadID, "transcript")), "notifications/resources/list_changed ")
	if got := f.read(of(killed.ThreadID, "result")); !strings.Contains(got, `\"status\":\"error\"`) {
		t.Errorf("a killed thread is %s", got)
	}

	p.noError(os.RemoveAll(sign.StateFolder(p.home())))
	held, err := start(h, "slow")
	p.noError(err)
	f.await(updated("rye://threads"), "notifications/resources/list_changed ")
	f.listen("rye://threads", of(held.ThreadID, "result"))
	p.model.release()
	for !strings.Contains(f.read(of(held.ThreadID, "result")), "Held.") { // it was told to run, too
		f.await(updated(of(held.ThreadID, "result")))
	}
	if got := f.read(of(held.ThreadID, "transcript")); !strings.Contains(got, "Be held.") {
		t.Errorf("the transcript says %s", got)
	}
	f.stop()
	h.close()
	p.wantRest(h)
}
