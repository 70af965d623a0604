package confine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/tools/confine/inside"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// look tries what there is: whether namespaces can be made, and used, is decided by
// the kernel's settings, its security modules and the container around.
func (c *Confiner) look(ctx context.Context) Available {
	has := Available{Landlock: inside.LandlockVersion()}
	args, err := inside.Spec{Namespaces: true, Hidden: []string{os.TempDir()}}.Probe()
	if err != nil {
		has.Why = err.Error()
		return has
	}
	probe := exec.CommandContext(ctx, c.Self, args...)
	probe.Env, probe.Dir = []string{}, "/" // this process may stand in the folder that is hidden
	probe.SysProcAttr = &syscall.SysProcAttr{}
	namespaces(probe.SysProcAttr, true)
	var said bytes.Buffer
	probe.Stderr = &said
	if err := probe.Run(); err != nil {
		has.Why = strings.TrimSpace(strings.TrimPrefix(said.String(), "Error: the command cannot be confined:"))
		if has.Why == "" {
			has.Why = err.Error()
		}
		return has
	}
	has.Namespaces = true
	return has
}

// namespaces gives a process users and mounts, and without network one, of its own, with the
// rights to mount, to switch on its loopback, and to drop these for good. It makes itself the user
// that it is outside.
func namespaces(attr *syscall.SysProcAttr, withoutNetwork bool) {
	attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if withoutNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
}

// become makes the command one that is confined before it begins.
func (c *Confiner) become(program string, p Policy, has Available, command *process.Command) error {
	spec := inside.Spec{Namespaces: has.Namespaces, Writable: p.Writable, Pinned: p.pinned(), ReadOnly: p.ReadOnly, Hidden: p.Hidden}
	if has.Namespaces {
		command.Sys = func(attr *syscall.SysProcAttr) { namespaces(attr, !p.Network.All) }
		if p.Network.throughProxy() && !p.Network.All {
			spec.Proxy = true
			if err := serveProxy(p.Network, command); err != nil {
				return fmt.Errorf("proxy: %w", err)
			}
		}
	}
	args, err := spec.Args(program, command.Args)
	if err != nil {
		return err
	}
	command.Path, command.Args = c.Self, args
	return nil
}
