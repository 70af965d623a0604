package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestAttackHandedSettings: a program starts the process of a queued thread itself and hands it settings in which signatures do not count and the provider is a listener. The process refuses what thread.json does not name, and the thread stays in the queue.
func TestAttackHandedSettings(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	var heard atomic.Int64
	listener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }))
	t.Cleanup(listener.Close)
	p := newVictim(t)
	p.ownThread()
	p.enqueue()
	before := p.model.requests()
	state := placetest.Dir(p.dir)
	id := queuedThread(p, state)
	if id == "" {
		t.Fatal("no thread is in the queue")
	}
	settings, err := config.New(resolve.Roots{User: p.home(), Project: p.dir, System: system.FS()}).Read().Decide()
	p.noError(err)
	tampered := strings.NewReplacer(`"Mode":"strict"`, `"Mode":"off"`, `"BaseURL":""`, `"BaseURL":"`+listener.URL+`"`).Replace(string(settings))
	program, err := exec.LookPath(p.program)
	p.noError(err)
	for name, handed := range map[string]string{"tampered": tampered, "genuine": string(settings), "no settings at all": "{}"} {
		lock, err := process.Acquire(folder.Of(state, id).Lock(""))
		p.noError(err)
		log := filepath.Join(t.TempDir(), "log")
		started, err := process.Detach(process.Spec{
			Path: program, Args: spawn.Args(p.dir, id), Env: append(p.env, "ANTHROPIC_BASE_URL="), Dir: p.dir, LogPath: log,
			Lock: lock, Secrets: []string{"settings:" + handed},
		})
		p.noError(err)
		p.noError(lock.Release())
		<-started.Done()
		said, err := os.ReadFile(log)
		p.noError(err)
		if started.Exit().Code == 0 || !strings.Contains(string(said), "not those that thread.json names") {
			t.Errorf("%s: exit %v: %s", name, started.Exit(), said)
		}
		if now := queuedThread(p, state); now != id {
			t.Errorf("%s: in the queue is %q", name, now)
		}
	}
	if n := heard.Load(); n != 0 || p.model.requests() != before {
		t.Errorf("the listener heard %d requests, the model was asked %d times", n, p.model.requests()-before)
	}
}

// queuedThread is the one thread in the queue.
func queuedThread(p *place, state string) thread.ID {
	p.Helper()
	said := p.command("threads", "list", "--json")
	var found thread.ID
	dirs, err := filepath.Glob(filepath.Join(state, "own-*"))
	p.noError(err)
	for _, dir := range dirs {
		id := thread.ID(filepath.Base(dir))
		meta, err := os.ReadFile(filepath.Join(dir, "thread.json"))
		p.noError(err)
		if strings.Contains(string(meta), `"status":"created"`) && strings.Contains(said, string(id)) {
			found = id
		}
	}
	return found
}
