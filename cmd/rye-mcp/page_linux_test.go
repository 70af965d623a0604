package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// browser is a program that keeps its arguments and environment, and stays until the file
// stay is gone.
const browser = `#!/bin/sh
env > %[1]s/environ
printf '%%s' "$1" > %[1]s/address.new
mv %[1]s/address.new %[1]s/address
while [ -e %[1]s/stay ]; do sleep 0.05; done
`

// thief is a command of a model that looks for the address of a browser among the
// processes, and gets a token for the code in it.
const thief = `A=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -aoE 'http://[0-9.]+:[0-9]+/#code=[A-Z0-9]{20,}' | head -1)
echo "$A" > found.txt
P=${A#http://*:}; P=${P%%/*}; B="{\"code\":\"${A##*=}\"}"
exec 3<>/dev/tcp/127.0.0.1/$P && printf 'POST /ui/api/exchange HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$P" "${#B}" "$B" >&3 && cat <&3 > answer.txt
`

// placeOfCommand is a place with a directive, shell, whose model runs one command.
func placeOfCommand(t *testing.T, line string) *place {
	t.Helper()
	command, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	return newPlace(t, `
-- .ai/directives/shell.md --
`+"```xml"+`
<directive name="shell" version="1.0.0"><metadata><model tier="fast" />
<permissions><execute><tool>rye.bash</tool></execute></permissions></metadata></directive>
`+"```"+`

Run it.
-- model.yaml --
turns:
  - times: 1
    tool_calls: [{name: rye_bash, input: {command: `+string(command)+`}}]
  - text: Done.
`)
}

// TestAttackAddressOfTheBrowser: a thread reads the address with the code out of the arguments of the browser, before the browser has used it, and asks for its token. It is told that a thread is no person, the code stays good for the browser, and neither arguments nor environment of any process have the token or a key.
func TestAttackAddressOfTheBrowser(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := placeOfCommand(t, thief)
	dir := t.TempDir()
	script := filepath.Join(dir, "browser")
	p.noError(os.WriteFile(script, fmt.Appendf(nil, browser, dir), 0o700)) //nolint:gosec // it is run
	stay := filepath.Join(dir, "stay")
	p.noError(os.WriteFile(stay, nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(stay) })
	s := p.ui([]string{"BROWSER=" + script}, "ui")
	var (
		address []byte
		err     error
	)
	p.until(func() (bool, string) {
		address, err = os.ReadFile(filepath.Join(dir, "address"))
		return err == nil, "no browser was opened"
	})
	found := regexp.MustCompile(`^` + regexp.QuoteMeta(s.base) + `/#code=([A-Z0-9]{26})$`).FindSubmatch(address)
	if found == nil {
		t.Fatalf("the browser was opened on %s", address)
	}

	var started view.Started
	s.post("start", `{"directive":"shell"}`, &started)
	s.awaitRow(started.ThreadID, func(r *board.Row) bool { return r.Status == thread.Completed })
	stolen, _ := os.ReadFile(filepath.Join(p.dir, "found.txt"))
	answer, _ := os.ReadFile(filepath.Join(p.dir, "answer.txt"))
	if strings.TrimSpace(string(stolen)) != string(address) || !bytes.Contains(answer, []byte(`"code":"not_a_person"`)) {
		t.Errorf("the thread found %q and was answered %q", stolen, answer)
	}
	if status, answer := s.ask(http.MethodPost, "/ui/api/exchange", fmt.Sprintf(`{"code":%q}`, found[1])); status != http.StatusOK {
		t.Errorf("the browser: %d %s", status, answer)
	}
	environ, err := os.ReadFile(filepath.Join(dir, "environ"))
	p.noError(err)
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid))
	p.noError(err)
	for what, has := range map[string][]byte{"the environment of the browser": environ, "the arguments of rye-mcp": args, "the arguments of the browser": address} {
		if bytes.Contains(has, []byte(s.token)) || bytes.Contains(has, []byte(testKey)) {
			t.Errorf("%s have a secret", what)
		}
	}
}

// hello is the first message of a client of MCP.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// client is a command of a model that speaks MCP to a server of the person's, as an editor does.
const client = `P=$(cat port) B='` + hello + `'
exec 3<>/dev/tcp/127.0.0.1/$P && printf 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$P" "${#B}" "$B" >&3 && cat <&3 > answer.txt
`

// TestAttackClientInAThread: a thread with a shell speaks MCP to the server that the person has started, where it could sign a directive of its own and start it with any rights. It is refused, and the person's clients are not.
func TestAttackClientInAThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := placeOfCommand(t, client)
	s := p.ui(nil, "serve", "--http", "127.0.0.1:0")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.base, "http://"), ":")
	p.noError(os.WriteFile(filepath.Join(p.dir, "port"), []byte(port), 0o600))
	var started view.Started
	s.post("start", `{"directive":"shell"}`, &started)
	s.awaitRow(started.ThreadID, func(r *board.Row) bool { return r.Status == thread.Completed })
	answer, _ := os.ReadFile(filepath.Join(p.dir, "answer.txt"))
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 403")) || !bytes.Contains(answer, []byte("a command of a thread")) {
		t.Errorf("the thread was answered %q", answer)
	}
	if status, answer := s.ask(http.MethodPost, "/mcp", hello, "Accept: application/json, text/event-stream"); status != http.StatusOK {
		t.Errorf("the person was answered %d %s", status, answer)
	}
}
