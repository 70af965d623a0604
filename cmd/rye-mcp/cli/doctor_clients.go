package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// clients says which clients start this program, and whether their entries work. Only
// with --all are they started, and never what a project names: that is anybody's.
func (d *doctor) clients(ctx context.Context) []finding {
	home, err := d.sys.HomeDir()
	if err != nil {
		return nil // the check of spaces tells
	}
	var found []finding
	for _, scope := range scopes() {
		in := &installer{
			sys: d.sys, project: d.project, user: d.user, flags: installFlags{scope: scope, name: serverName},
			machine: clients.Machine{OS: runtime.GOOS, Home: home, Getenv: d.sys.Getenv},
		}
		if scope == scopeProject && isSameFolder(home, d.project) {
			continue // its files are the user's, which were looked at
		}
		all, problems := in.allConfigured()
		for _, c := range all {
			found = append(found, d.entry(ctx, in, c))
		}
		for _, err := range problems {
			found = append(found, warnf("mend it, or move it away", "%v", err))
		}
	}
	if len(found) == 0 {
		return []finding{okf("no client starts it yet; rye-mcp install lists them")}
	}
	return found
}

func isSameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// entry looks at the entry of a client.
func (d *doctor) entry(ctx context.Context, in *installer, c configured) finding {
	at := fmt.Sprintf("%s: %s in %s", c.client.Title, c.client.At(c.name), c.path)
	again := fmt.Sprintf("rye-mcp install %s --scope %s", c.client.ID, in.flags.scope)
	if c.name != serverName {
		again += " --name " + c.name
	}
	if c.entry.Off {
		return okf("%s is switched off", at)
	}
	path, same, err := d.programOf(c.entry.Command)
	switch {
	case err != nil:
		return warnf(again, "%s cannot start %s: %v", at, c.entry.Command, err)
	case !same && in.flags.scope == scopeProject:
		return warnf(again, "%s starts %s, which is not this program", at, path)
	case !d.all && !same:
		return warnf(again+", or doctor --all, which starts it", "%s starts %s, another file than this program", at, path)
	case !d.all || in.flags.scope == scopeProject:
		return okf("%s starts this program", at)
	}
	seen, err := startAs(ctx, d.sys, c.client, c.entry, in.project)
	if err != nil {
		return warnf(again, "%s: %s", at, tool.AsFault(err).Message)
	}
	if has := versionOf(ctx, path); !same && has != version() {
		return warnf(again, "%s starts version %s of %s; this is %s", at, cmp.Or(has, "unknown"), path, version())
	}
	return okf("%s starts with %s", at, counted(seen.tools, "tool"))
}

// programOf is the program that a command names, and whether it is this one.
func (d *doctor) programOf(command string) (path string, same bool, err error) {
	if path = command; !filepath.IsAbs(command) {
		if path = onPath(d.sys, command); path == "" {
			return "", false, errors.New("it is not on the PATH")
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return path, false, err
	}
	if !isProgram(info) {
		return path, false, errors.New("it is no program")
	}
	self, err := d.sys.Executable()
	if err != nil {
		return path, false, nil //nolint:nilerr // the check of the editor tells
	}
	own, err := os.Stat(self)
	return path, err == nil && os.SameFile(info, own), nil
}
