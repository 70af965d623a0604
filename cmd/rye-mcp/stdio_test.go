package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Standard output carries messages only, one a line, and an answer for every request,
// whatever a client sends; the server goes on until its input ends.
func TestNothingButProtocol(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".ai"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("rye-mcp", "--stdio")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "USER_SPACE="+dir, "RYE_CACHE_DIR="+dir, "RYE_LOG_LEVEL=debug")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	asked := map[string]bool{}
	id := 0
	request := func(method, params string) string {
		id++
		asked[fmt.Sprint(id)] = true
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	}
	call := func(tool, args string) string {
		return request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	}
	lines := []string{
		request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`),
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		``, `not JSON`, `{`, `[]`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","method":"no/such"}`, "\x00\xff", `{"jsonrpc":"1.0","id":"old","method":"ping"}`,
		request("no/such", `{}`), request("tools/call", `7`), call("no_such_tool", `{}`),
		call("rye_execute", `{"item_id":"rye/bash","parameters":{"command":"echo loud; echo louder >&2"}}`),
		call("rye_execute", `{"item_id":"rye/agent/threads/orchestrator","parameters":{"operation":7}}`),
		call("rye_execute", `{"item_id":"\u0000","parameters":[]}`), call("rye_fetch", `{"item_id":"rye/demo/worker"}`),
		call("rye_search", `{"query":"*"}`), call("wait_threads", `{"thread_ids":["x-1"],"timeout":1e308}`),
		call("list_threads", `{"cursor":"nonsense"}`), call("get_status", `null`), request("tools/list", `{}`), request("ping", `{}`),
	}
	done := make(chan error, 1)
	go func() {
		_, err := in.Write([]byte(strings.Join(lines, "\n") + "\n"))
		done <- err
	}()

	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for len(asked) > 0 && scanner.Scan() {
		var message struct {
			JSONRPC string
			ID      json.RawMessage
			Result  json.RawMessage
			Error   json.RawMessage
		}
		if err := json.Unmarshal(scanner.Bytes(), &message); err != nil || message.JSONRPC != "2.0" || (message.Result == nil) == (message.Error == nil) {
			t.Errorf("not an answer: %q (%v)", scanner.Text(), err)
		}
		delete(asked, string(message.ID))
	}
	if err := <-done; err != nil {
		t.Errorf("write: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	for scanner.Scan() {
		t.Errorf("after the last answer: %q", scanner.Text())
	}
	if err := cmd.Wait(); err != nil || len(asked) > 0 {
		t.Errorf("the server ended with %v and left %v unanswered; its log:\n%s", err, asked, log.String())
	}
	if strings.Contains(log.String(), `"panic"`) {
		t.Errorf("the server panicked:\n%s", log.String())
	}
}
