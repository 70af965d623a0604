package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Main becomes the command when this process was started for that, and returns when it
// was not.
func Main(args, environ []string) {
	if len(args) < 4 || args[1] != Argument {
		return
	}
	err := become(args[2], args[3:], environ)
	fmt.Fprintf(os.Stderr, "Error: the command cannot be confined: %v\n", err)
	os.Exit(Failed)
}

// become confines the process, step by step, and executes the command. Capabilities go
// last: mounting needs them.
func become(spec string, command, environ []string) error {
	// Landlock and capabilities are those of a thread of the system, and exec takes
	// over those of the one that calls it.
	runtime.LockOSThread()
	var s Spec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	if err := leaveTerminal(); err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	if s.Namespaces {
		if err := mapUser(s.User, s.Group); err != nil {
			return fmt.Errorf("users: %w", err)
		}
		if err := s.mount(); err != nil {
			return fmt.Errorf("mounts: %w", err)
		}
	}
	if s.Proxy {
		proxy, err := handListener()
		if err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
		environ = throughProxy(environ, proxy)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := restrictWrites(s.Writable); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if s.Namespaces {
		if err := dropCapabilities(); err != nil {
			return fmt.Errorf("capabilities: %w", err)
		}
	}
	if command[0] == "" {
		os.Exit(0) // it was only to be seen whether this can be done
	}
	err := unix.Exec(command[0], command, environ)
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s is not there: %w", command[0], err)
	}
	return fmt.Errorf("execute %s: %w", command[0], err)
}

// throughProxy names the proxy in the ways that programs know.
func throughProxy(environ []string, proxy string) []string {
	names := []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}
	kept := make([]string, 0, len(environ)+6)
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !contains(names, name) {
			kept = append(kept, entry)
		}
	}
	for _, name := range names {
		if strings.ToLower(name) != "no_proxy" && strings.ToLower(name) != "all_proxy" {
			kept = append(kept, name+"="+proxy)
		}
	}
	return append(kept, "NODE_USE_ENV_PROXY=1") // Node 24 and later look at the others only then
}

func contains(list []string, text string) bool {
	for _, element := range list {
		if element == text {
			return true
		}
	}
	return false
}

// dropCapabilities takes from this process what the namespaces gave it.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
