package process

import (
	"context"
	"fmt"
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
		if c, known := ClientOf(client, server); !known || c != (Client{User: os.Getuid(), PID: os.Getpid()}) {
			t.Errorf("%s: %+v, %t; want %d", address, c, known, os.Getpid())
		}
		if c, known := ClientOf(server, client); known {
			t.Errorf("%s: nobody has accepted it, and %+v has it", address, c)
		}
		_ = conn.Close()
		_ = listener.Close()
		if _, known := ClientOf(client, server); known {
			t.Errorf("%s: a closed connection has a process", address)
		}
	}
}

// A table of sockets tells whose a connection is, and nothing of one that nobody has.
func TestSocketOf(t *testing.T) {
	t.Parallel()
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:223D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1267 0100007F:223D 01 00000000:00000000 00:00000000 00000000  1001        0 12 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:1268 0100007F:223D 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0000000000000000
   3: 0000000000000000FFFF00000100007F:1269 0000000000000000FFFF00000100007F:223D 01 00000000:00000000 00:00000000 00000000  1002        0 13 1
   4: nonsense:1270 0100007F:223D 01 a b c d e 14
`
	server := netip.MustParseAddrPort("127.0.0.1:8765")
	for port, want := range map[uint16]string{0x1267: "1001 12 true", 0x1268: "0  false", 0x1269: "1002 13 true", 0x1270: "0  false", 1: "0  false"} {
		user, inode, found := socketOf(table, netip.AddrPortFrom(server.Addr(), port), server)
		if got := fmt.Sprintf("%d %s %t", user, inode, found); got != want {
			t.Errorf("port %d: %s, want %s", port, got, want)
		}
	}
}

// A mark is read of who has one.
func TestMarkOf(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Env = slices.Concat(os.Environ(), Mark("/project", "review-1"))
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	// It has its environment when it runs, which is later than Start returns.
	_, err = in.Write([]byte("x"))
	must(t, err)
	_, err = out.Read(make([]byte, 1))
	must(t, err)
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
