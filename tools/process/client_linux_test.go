package process

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// The process at the other end of a connection is known, by either kind of address.
func TestClientOf(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		var listen net.ListenConfig
		listener, err := listen.Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Skipf("no address %s: %v", address, err)
		}
		var dial net.Dialer
		conn, err := dial.DialContext(context.Background(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		client, server := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(listener.Addr().String())
		if pid, known := ClientOf(client, server); !known || pid != os.Getpid() {
			t.Errorf("%s: process %d, %t; want %d", address, pid, known, os.Getpid())
		}
		if pid, known := ClientOf(server, client); known {
			t.Errorf("%s: nobody has accepted it, and process %d has it", address, pid)
		}
		_ = conn.Close()
		_ = listener.Close()
		if _, known := ClientOf(client, server); known {
			t.Errorf("%s: a closed connection has a process", address)
		}
	}
}

// A mark is read of who has one.
func TestMarkOf(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.Env = slices.Concat(os.Environ(), Mark("/project", "review-1"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	if got := MarkOf(cmd.Process.Pid); got != "review-1" {
		t.Errorf("mark %q", got)
	}
	if got := MarkOf(-1); got != "" {
		t.Errorf("mark of nobody %q", got)
	}
	if all := slices.Collect(AncestryOf(cmd.Process.Pid)); len(all) < 2 || !slices.Equal(all[1], os.Args) {
		t.Errorf("ancestry %q", all)
	}
}
