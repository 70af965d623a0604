package process

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Client is who has opened a TCP connection to another process of this machine.
type Client struct {
	User int // whose the process is
	PID  int // 0: it is not known which, such as one of another user or container
}

// ClientOf is who has the socket whose own address is client and whose peer is server
// (proc_pid_net(5): tcp, tcp6). Known is false when there is none on this machine.
func ClientOf(client, server netip.AddrPort) (c Client, known bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		user, inode, found := socketOf(string(content), client, server)
		if found {
			return Client{User: user, PID: ownerOf(inode)}, true
		}
	}
	return Client{}, false
}

// socketOf finds a connection in a table of sockets.
func socketOf(table string, local, peer netip.AddrPort) (user int, inode string, found bool) {
	const userField, inodeField = 7, 9
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) <= inodeField || !sameAddress(fields[1], local) || !sameAddress(fields[2], peer) {
			continue
		}
		user, err := strconv.Atoi(fields[userField])
		if inode = fields[inodeField]; err == nil && inode != "0" { // else nobody has it any more
			return user, inode, true
		}
	}
	return 0, "", false
}

// ownerOf is the process that has a socket; 0: none that this user may look at.
func ownerOf(inode string) int {
	all, err := pids()
	if err != nil {
		return 0
	}
	for _, pid := range all {
		if hasSocket(pid, "socket:["+inode+"]") {
			return pid
		}
	}
	return 0
}

// sameAddress compares an address with one as the kernel writes it: hexadecimal words in
// the order of this machine's bytes, and the port.
func sameAddress(written string, want netip.AddrPort) bool {
	host, port, _ := strings.Cut(written, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil || uint16(number) != want.Port() {
		return false
	}
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw)%4 != 0 {
		return false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	return ok && address.Unmap() == want.Addr().Unmap()
}

// hasSocket reports whether a process has a file open by that name.
func hasSocket(pid int, socket string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	open, err := os.ReadDir(dir)
	if err != nil {
		return false // another user's, or it has ended
	}
	for _, file := range open {
		if to, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && to == socket {
			return true
		}
	}
	return false
}
