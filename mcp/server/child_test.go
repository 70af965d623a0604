package server_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A client that closes its reading end must not kill the server with SIGPIPE:
// the write fails, and serving ends in order.
func TestClientGoneDoesNotKill(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	if _, err := io.WriteString(in, ping); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || answer != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
		t.Fatalf("answer %q, %v", answer, err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, ping); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("server: %v", err)
	}
	if !strings.Contains(stderr.String(), "served: write to client: ") {
		t.Errorf("ServeStdio did not return the write error: %s", stderr.String())
	}
}
