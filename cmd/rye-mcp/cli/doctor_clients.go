package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

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
	switch {
	case err != nil:
		return warnf(again, "%s: %s", at, tool.AsFault(err).Message)
	case seen.version != version():
		return warnf(again, "%s starts version %s of %s; this is %s", at, seen.version, path, version())
	}
	return okf("%s starts with %s", at, counted(seen.tools, "tool"))
}

// programOf is the program that a command names, and whether it is this one.
func (d *doctor) programOf(command string) (path string, same bool, err error) {
	var places []string
	if filepath.IsAbs(command) {
		places = []string{command}
	} else if !strings.ContainsRune(command, filepath.Separator) {
		for _, dir := range filepath.SplitList(d.sys.Getenv("PATH")) {
			places = append(places, filepath.Join(dir, command))
		}
	}
	for _, place := range places {
		info, statErr := os.Stat(place)
		switch {
		case statErr != nil:
			err = statErr
			continue
		case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
			err = fmt.Errorf("%s is no program", place)
			continue
		}
		self, selfErr := d.sys.Executable()
		if selfErr != nil {
			return place, false, nil //nolint:nilerr // the check of the editor tells
		}
		own, selfErr := os.Stat(self)
		return place, selfErr == nil && os.SameFile(info, own), nil
	}
	if err == nil || len(places) > 1 {
		err = fmt.Errorf("there is no %s on the PATH", command)
	}
	return "", false, err
}
