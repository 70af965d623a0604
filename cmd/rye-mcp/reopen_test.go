package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// TestReopenedState: the state that a server has open is removed, or its key is
// replaced. The next call finds what is there now and starts threads in it, again
// and again.
func TestReopenedState(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, fmt.Sprintf(loaded, 10))
	p.model.release()
	h := p.serve()
	ai, keys := filepath.Join(p.dir, ".ai"), filepath.Dir(sign.StateFolder(p.home()))
	wantCompleted(h, startMany([]*host{h}, "brief", 1))
	for _, gone := range []string{
		filepath.Join(ai, "state"), sign.StateFolder(p.home()), filepath.Join(ai, "state"), placetest.Dir(p.dir),
		keys, filepath.Join(ai, "state"), filepath.Join(ai, "state"),
	} {
		p.until(func() (bool, string) { // the last thread writes until it is gone
			left, err := processesIn(p.dir)
			return err == nil && len(left) <= 1, fmt.Sprintf("processes: %s (%v)", strings.Join(left, "\n"), err)
		})
		p.noError(os.RemoveAll(gone))
		if list := must[view.List](h, "list_threads", args{}); list.Count != 0 {
			t.Errorf("without %s: %d threads", gone, list.Count)
		}
		wantCompleted(h, startMany([]*host{h}, "brief", 2))
		if list := must[view.List](h, "list_threads", args{}); list.Count != 2 {
			t.Errorf("after %s: %d threads", gone, list.Count)
		}
	}
	h.close()
	p.wantRest(h)
}

// TestThreadsOutliveReopening: the key of the state is replaced while a thread runs and
// a call waits for it. Both come to their end.
func TestThreadsOutliveReopening(t *testing.T) {
	t.Parallel()
	p := newPlace(t, fmt.Sprintf(loaded, 10))
	h := p.serve()
	slow, err := start(h, "slow")
	p.noError(err)
	p.wantCalls(1)
	before := placetest.Dir(p.dir)
	waits, woken := make(chan struct{}, 1), make(chan error, 1)
	h.client.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method != "notifications/progress" {
			return
		}
		select {
		case waits <- struct{}{}:
		default: // told already
		}
	})
	var wait mcp.CallToolRequest
	wait.Params.Name, wait.Params.Arguments = "wait_threads", args{"thread_ids": []thread.ID{slow.ThreadID}, "timeout": waitPatience.Seconds()}
	wait.Params.Meta = &mcp.Meta{ProgressToken: "wait"}
	go func() {
		result, err := h.client.CallTool(t.Context(), wait)
		if text, _ := json.Marshal(result); err == nil && !strings.Contains(string(text), `\"status\":\"completed\"`) {
			err = fmt.Errorf("got %s", text)
		}
		woken <- err
	}()
	<-waits
	p.noError(os.RemoveAll(sign.StateFolder(p.home())))
	brief, err := start(h, "brief")
	p.noError(err)
	p.model.release()
	wantCompleted(h, []thread.ID{brief.ThreadID})
	p.noError(<-woken)
	if meta, err := os.ReadFile(folder.Of(before, slow.ThreadID).Meta()); err != nil || !strings.Contains(string(meta), `"status":"completed"`) {
		t.Errorf("%s, %v", meta, err)
	}
	if _, err := os.Stat(folder.Of(before, brief.ThreadID).Meta()); err == nil {
		t.Error("the new thread is in the state of the old key")
	}
	h.close()
}
