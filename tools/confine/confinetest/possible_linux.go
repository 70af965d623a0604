package confinetest

import (
	"context"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Possible reports whether this system can confine commands of processes that are started as a
// user; nil: as this one.
func Possible(ctx context.Context, as *syscall.SysProcAttr) bool {
	return namespaces(ctx, as) && landlock()
}

// namespaces reports whether util-linux gets a user its own users, mounts and network, with
// mounts that can be changed.
func namespaces(ctx context.Context, as *syscall.SysProcAttr) bool {
	command := exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--mount", "--net", "mount", "--rbind", "/tmp", "/tmp")
	command.SysProcAttr = as
	return command.Run() == nil
}

// landlock reports whether the kernel tells a version of its interface: see landlock(7).
func landlock() bool {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && version > 0
}
