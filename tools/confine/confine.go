package confine

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Confiner holds commands to policies.
type Confiner struct {
	// Self is the file of this program, which calls inside.Main first of all.
	Self string

	probe sync.Once
	has   Available
}

// Available is what this system can hold commands to. It is found out once, to the
// end: a caller that is cancelled meanwhile must not decide it.
func (c *Confiner) Available(ctx context.Context) Available {
	c.probe.Do(func() { c.has = c.look(context.WithoutCancel(ctx)) })
	return c.has
}

// Apply changes a command so that it is held to a policy, as far as the mode asks for
// and this system can, and returns what is kept. The error is [ErrUnavailable] where
// the mode is [Required] and something of it cannot be kept.
func (c *Confiner) Apply(ctx context.Context, mode Mode, p Policy, command *process.Command) (Available, error) {
	if mode == Off {
		return Available{}, nil
	}
	has := c.Available(ctx)
	switch {
	case mode == Required && !has.Whole():
		return has, fmt.Errorf("%w: %s", ErrUnavailable, has)
	case !has.Namespaces && has.Landlock == 0:
		return has, nil
	}
	program, err := find(command)
	if err != nil {
		return has, err
	}
	return has, c.become(program, p.found(), has, command)
}

// find is the program of a command as a path: the confined process looks nothing up.
func find(command *process.Command) (string, error) {
	program, err := exec.LookPath(command.Path)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(program) {
		return program, nil
	}
	if command.Dir != "" {
		program = filepath.Join(command.Dir, program)
	}
	return filepath.Abs(program)
}

// found is the policy with its paths as the kernel knows them. Paths that are not
// there are left out, and so are those below something hidden.
func (p Policy) found() Policy {
	p.Writable, p.ReadOnly, p.Hidden = existing(p.Writable), existing(p.ReadOnly), existing(p.Hidden)
	return p
}

// pinned are the folders between what may be changed and what may not, the outer ones first. If one of
// them were moved, what is protected would be at a path that the next command's mounts do not know.
func (p Policy) pinned() []string {
	var pinned []string
	for _, path := range slices.Concat(p.ReadOnly, p.Hidden) {
		for _, root := range p.Writable {
			if !pathname.Has(root, path) {
				continue
			}
			for dir := filepath.Dir(path); len(dir) > len(root); dir = filepath.Dir(dir) {
				pinned = append(pinned, dir)
			}
		}
	}
	slices.Sort(pinned)
	return slices.Compact(pinned)
}

// existing are the paths that are there, without links.
func existing(paths []string) []string {
	var found []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			found = append(found, resolved)
		}
	}
	return found
}
