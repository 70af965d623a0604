package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// programName is what this program is called in configurations.
	programName = "rye-mcp"
	// serverName is what its server is called there unless people say otherwise.
	serverName = "rye"
	// whatStarts is a decision that is a person's.
	whatStarts = "what other programs start"
)

// Where an entry goes to.
const (
	scopeUser    = "user"
	scopeProject = "project"
)

func scopes() []string { return []string{scopeUser, scopeProject} }

// installFlags are those of install.
type installFlags struct {
	scope, name                        string
	print, uninstall, all, force, json bool
}

func newInstallCommand(sys System, opts *options) *cobra.Command {
	var flags installFlags
	cmd := &cobra.Command{
		Use:   "install [CLIENT]",
		Short: "Put the server into the configuration of a client, such as Claude Code",
		Long: `Put the server into the configuration of a client, after it was started as that client
starts it. The clients are
` + strings.Join(clients.IDs(), ", ") + `.
Without a client the ones that are found are listed.

Everything else in the file stays as it is, and a copy of the file is kept beside it.
Keys are never written: where a client passes no environment on, the entry has the
names of the variables. The same command again changes nothing. Claude Code gets a
plugin too, which wakes the model when a thread ends.

With --scope project the entry goes into the project's own file, and everybody who
clones the project and trusts it runs it.`,
		Example: `  rye-mcp install claude-code
  rye-mcp install codex --print
  rye-mcp install cursor --scope project
  rye-mcp install claude-desktop --project ~/work
  rye-mcp install --all
  rye-mcp install claude-code --uninstall`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runInstall(cmd.Context(), sys, *opts, args, flags)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, justThese
			}
			return clients.IDs(), inOrder
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.scope, "scope", scopeUser, "user: for all your projects; project: into the project's own file")
	completeFlag(cmd, "scope", scopes)
	f.StringVar(&flags.name, "name", serverName, "what the server is called there")
	f.BoolVar(&flags.print, "print", false, "print the entry and where it goes to, and write nothing")
	f.BoolVar(&flags.uninstall, "uninstall", false, "take out what was put in, and nothing else")
	f.BoolVar(&flags.all, "all", false, "every client that is found")
	f.BoolVar(&flags.force, "force", false, "replace a server of another kind that has the name")
	jsonFlag(cmd, &flags.json)
	cmd.MarkFlagsMutuallyExclusive("print", "uninstall")
	cmd.MarkFlagsMutuallyExclusive("force", "uninstall")
	return cmd
}

func runInstall(ctx context.Context, sys System, opts options, args []string, flags installFlags) error {
	in, err := newInstaller(sys, opts, flags)
	if err != nil {
		return err
	}
	if len(args) == 0 && !flags.all {
		found := in.list()
		return conclude(sys, flags.json, found, true, func() error { return writeClients(newDisplay(sys, opts), found) })
	}
	chosen, err := in.choose(args)
	if err != nil {
		return err
	}
	if flags.print {
		return in.show(chosen)
	}
	if err := mayDecide(sys, whatStarts); err != nil {
		return err
	}
	if !flags.all {
		done, err := in.do(ctx, chosen[0])
		if err != nil {
			return err
		}
		return conclude(sys, flags.json, done, true, func() error { return writeInstalled(sys, done) })
	}
	return in.doAll(ctx, chosen)
}

// installer puts the server into configurations.
type installer struct {
	sys     System
	opts    options
	flags   installFlags
	machine clients.Machine
	project string // canonical; empty where there is none
	user    string
}

// isGoodName reports whether every client takes a name: it becomes a part of the names of
// tools.
func isGoodName(name string) bool {
	for i, c := range name {
		small := c >= 'a' && c <= 'z'
		if !small && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= maxServerName
}

// maxServerName is how many characters the name of a server may have: with the longest
// name of a tool it stays below the 64 that vendors of models allow.
const maxServerName = 32

func newInstaller(sys System, opts options, flags installFlags) (*installer, error) {
	home, err := sys.HomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the home directory, where clients keep their configurations: %w", err)
	}
	in := &installer{sys: sys, opts: opts, flags: flags, machine: clients.Machine{OS: runtime.GOOS, Home: home, Getenv: sys.Getenv}}
	if in.user, err = userSpace(sys); err != nil {
		return nil, err
	}
	switch {
	case !slices.Contains(scopes(), flags.scope):
		return nil, &usageError{message: fmt.Sprintf("there is no scope %q", item.Shown(flags.scope)), try: "--scope user, --scope project"}
	case !isGoodName(flags.name):
		return nil, &usageError{
			message: fmt.Sprintf("%q cannot be the name of a server in every client: it needs a small letter first, then small letters, digits, - and _, 32 at most", item.Shown(flags.name)),
			try:     "--name " + serverName,
		}
	}
	return in, in.findProject(home)
}

// findProject is about the folder that --project names, or for the scope of a project the
// working directory.
func (in *installer) findProject(home string) error {
	if in.flags.scope == scopeUser && in.opts.project == "" {
		return nil
	}
	dir, err := projectDir(in.sys, in.opts)
	if err == nil {
		dir, err = canonical(dir)
	}
	if err != nil {
		return err
	}
	if real, err := canonical(home); err == nil && real == dir && in.flags.scope == scopeProject {
		return &usageError{message: dir + " is your home directory and no project", try: "--scope user, or --project FOLDER"}
	}
	in.project = dir
	return nil
}

// choose are the clients that are meant.
func (in *installer) choose(args []string) ([]clients.Client, error) {
	if in.flags.all {
		if len(args) > 0 {
			return nil, &usageError{message: "--all is for no client in particular", try: "rye-mcp install --all, or rye-mcp install " + item.Shown(args[0])}
		}
		var found []clients.Client
		for _, c := range clients.All() {
			if in.isThere(c) && (in.flags.scope == scopeUser || c.Project != "") {
				found = append(found, c)
			}
		}
		if len(found) == 0 {
			return nil, &usageError{message: "no client is found on this machine", try: "rye-mcp install CLIENT, where CLIENT is one of " + strings.Join(clients.IDs(), ", ")}
		}
		return found, nil
	}
	c, ok := clients.ByID(args[0])
	if !ok {
		return nil, &usageError{message: fmt.Sprintf("there is no client %q", item.Shown(args[0])), try: "one of " + strings.Join(clients.IDs(), ", ")}
	}
	if in.flags.scope == scopeProject && c.Project == "" {
		return nil, &usageError{message: c.Title + " has no configuration for a project", try: "rye-mcp install " + c.ID + " --project FOLDER"}
	}
	return []clients.Client{c}, nil
}

// doAll does what is asked for every client. One that fails does not keep the others.
func (in *installer) doAll(ctx context.Context, chosen []clients.Client) error {
	all, sound := make([]installed, 0, len(chosen)), true
	for _, c := range chosen {
		done, err := in.do(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			f := tool.AsFault(err)
			usage := &usageError{message: f.Message, try: advice(f)}
			_ = errors.As(err, &usage)
			done, sound = installed{Client: c.ID, Scope: in.flags.scope, State: stateFailed, Error: usage.message, Try: usage.try}, false
		}
		all = append(all, done)
	}
	return conclude(in.sys, in.flags.json, all, sound, func() error {
		for _, done := range all {
			if _, err := fmt.Fprintf(in.sys.Stdout, "%s\n", done.Client); err != nil {
				return err
			}
			if err := writeInstalled(in.sys, done); err != nil {
				return err
			}
		}
		return nil
	})
}

// path is the configuration of a client that is meant.
func (in *installer) path(c clients.Client) string {
	files := c.Files(in.machine)
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			return file
		}
	}
	return files[0]
}
