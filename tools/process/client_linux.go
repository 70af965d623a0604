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

// ClientOf is the process of this user that has opened a TCP connection to another of this
// machine: the one with the socket whose own address is client, and whose peer is server
// (proc_pid_net(5): tcp, tcp6). Known is false when it cannot be found, as it is another
// user's, another container's or another machine's.
func ClientOf(client, server netip.AddrPort) (pid int, known bool) {
	inode := ""
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		if inode = inodeOf(string(content), client, server); inode != "" {
			break
		}
	}
	if inode == "" || inode == "0" { // nobody has it any more
		return 0, false
	}
	all, err := pids()
	if err != nil {
		return 0, false
	}
	for _, pid := range all {
		if hasSocket(pid, "socket:["+inode+"]") {
			return pid, true
		}
	}
	return 0, false
}

// inodeOf finds a connection in a table of sockets; empty: it is not there.
func inodeOf(table string, local, peer netip.AddrPort) string {
	const inodeField = 9
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) <= inodeField {
			continue
		}
		if sameAddress(fields[1], local) && sameAddress(fields[2], peer) {
			return fields[inodeField]
		}
	}
	return ""
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
