package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/configfile"
	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// exportFlags are those of export claude.
type exportFlags struct {
	scope, name     string
	uninstall, json bool
}

func newExportCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write directives for other programs",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExportClaudeCommand(sys, opts))
	return cmd
}

func newExportClaudeCommand(sys System, opts *options) *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "claude [DIRECTIVE...]",
		Short: "Write an agent of Claude Code for each directive, which has it run by rye",
		Long: `Write an agent of Claude Code for each directive, below ` + claude.ExportFolder + `. The agent
passes its task on with rye_execute and reports the result; the directive runs in a
thread, with its own limits, tools and model.

Without names, all signed directives of the space that the scope is about are
written, and agents of directives that are gone are taken away. A file that was not
written by this command, or was changed since, stays as it is.`,
		Example: `  rye-mcp export claude
  rye-mcp export claude review/security rye/explain --scope user
  rye-mcp export claude --uninstall`,
		Args:              usageArgs(cobra.ArbitraryArgs),
		ValidArgsFunction: completer{sys: sys, opts: opts}.items,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(scopes(), flags.scope) {
				return &usageError{message: "--scope is user or project", try: "rye-mcp export claude --scope project"}
			}
			if !isGoodName(flags.name) {
				return &usageError{message: "--name is no name of a server", try: "--name " + serverName}
			}
			if err := mayDecide(sys, whatStarts); err != nil {
				return err
			}
			return exportClaude(cmd.Context(), sys, *opts, args, flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.scope, "scope", scopeProject, "project: agents of this project; user: of all your projects")
	completeFlag(cmd, "scope", scopes)
	f.StringVar(&flags.name, "name", serverName, "what the server is called in Claude Code")
	f.BoolVar(&flags.uninstall, "uninstall", false, "take away what was written, all or that of the directives that are named")
	jsonFlag(cmd, &flags.json)
	return cmd
}

// exportJSON is what export claude writes with --json.
type exportJSON struct {
	Success bool           `json:"success"`
	Agents  []exportedJSON `json:"agents"`
}

// exportedJSON is what became of one agent.
type exportedJSON struct {
	Directive string `json:"directive"`
	Path      string `json:"path,omitempty"`
	State     string `json:"state"` // one of the states below
	Reason    string `json:"reason,omitempty"`
}

// The states of an agent.
const (
	exportWritten = "written"
	exportSame    = "unchanged"
	exportRemoved = "removed"
	exportLeft    = "left" // as it is, for a reason
)

func exportClaude(ctx context.Context, sys System, opts options, ids []string, flags exportFlags) error {
	return withItems(ctx, sys, opts, func(a *itemActions) error {
		e := exporter{itemActions: a, flags: flags, dir: a.roots.Project, done: []exportedJSON{}}
		if flags.scope == scopeUser {
			e.dir = a.roots.User
		}
		var err error
		if flags.uninstall {
			err = e.remove(func(id, _ string) bool { return len(ids) == 0 || slices.Contains(ids, id) })
		} else {
			err = e.write(ctx, ids)
		}
		if err != nil {
			return err
		}
		ok := !slices.ContainsFunc(e.done, func(d exportedJSON) bool { return d.State == exportLeft })
		return conclude(sys, flags.json, exportJSON{ok, e.done}, ok, func() error { return writeExported(newDisplay(sys, opts), e.done) })
	})
}

// exporter writes the agents of one scope.
type exporter struct {
	*itemActions
	flags exportFlags
	dir   string // that of the scope
	done  []exportedJSON
}

// write writes the agents of the directives that are named, or of all.
func (e *exporter) write(ctx context.Context, ids []string) error {
	chosen := ids
	if len(ids) == 0 {
		var err error
		if chosen, err = e.all(ctx); err != nil {
			return err
		}
	}
	names := claude.ExportNames(append(e.written(), chosen...))
	gone := func(id, file string) bool { // its directive is, or has another name now that there is one like it
		return len(ids) == 0 && !slices.Contains(chosen, id) || slices.Contains(chosen, id) && file != names[id]+".md"
	}
	if err := e.remove(gone); err != nil {
		return err
	}
	for _, id := range chosen {
		if err := e.one(id, names[id]); err != nil {
			return err
		}
	}
	return nil
}

// all are the signed directives of the space of the scope. The items of Claude Code are
// there already.
func (e *exporter) all(ctx context.Context) ([]string, error) {
	space := item.Project
	if e.flags.scope == scopeUser {
		space = item.User
	}
	listed, err := e.List(ctx, action.ListRequest{Kinds: []item.Kind{item.Directive}, Spaces: []item.Space{space}})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, l := range listed {
		if l.Signature.Good() && l.Error == "" && !strings.HasPrefix(l.ID, claude.Prefix) {
			ids = append(ids, l.ID)
		}
	}
	return ids, nil
}

// one writes one agent.
func (e *exporter) one(id, name string) error {
	found, reason, err := e.usable(id)
	if err != nil || reason != "" {
		e.done = append(e.done, exportedJSON{Directive: id, State: exportLeft, Reason: reason})
		return err
	}
	doc, err := found.Directive()
	if err != nil {
		return err
	}
	content, err := claude.Export{ID: id, Name: name, Server: e.flags.name, Doc: doc}.File()
	if err != nil {
		return err
	}
	file, err := e.open(name + ".md")
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the file is synced by then
	d := exportedJSON{Directive: id, Path: file.Path, State: exportWritten}
	of, whole := claude.ExportOf(file.Content)
	switch {
	case file.Exists() && !whole:
		d.State, d.Reason = exportLeft, "it was not written by this command, or was changed since"
	case file.Exists() && of != id:
		d.State, d.Reason = exportLeft, "it stands for "+of
	case string(file.Content) == string(content):
		d.State = exportSame
	default:
		err = file.Overwrite(content)
	}
	e.done = append(e.done, d)
	return err
}

// usable finds a directive that can be run, and from where the agent is.
func (e *exporter) usable(id string) (found *resolve.Found, reason string, err error) {
	found, err = e.Resolver.Find(item.Directive, id)
	switch {
	case errors.As(err, new(*resolve.NotFoundError)):
		return nil, "there is no such directive", nil
	case err != nil:
		return nil, "", err
	case found.Detached != nil:
		return nil, "it is an agent, a command or a skill of Claude Code already", nil
	case found.Space == item.Project && e.flags.scope == scopeUser:
		return nil, "it is in this project only: --scope project", nil
	}
	if _, err := e.Trust.Check(trust.SubjectOf(found)); err != nil {
		return nil, err.Error(), nil //nolint:nilerr // it is the reason
	}
	return found, "", nil
}

// open opens the file of an agent.
func (e *exporter) open(name string) (*configfile.File, error) {
	if e.flags.scope == scopeUser {
		return configfile.OpenOwn(filepath.Join(e.dir, filepath.FromSlash(claude.ExportFolder), name))
	}
	return configfile.OpenIn(e.dir, claude.ExportFolder+"/"+name)
}

// files are the names of the agents that there are.
func (e *exporter) files() []string {
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }() // only read
	entries, err := fs.ReadDir(root.FS(), claude.ExportFolder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".md") && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// written are the directives that have an agent.
func (e *exporter) written() []string {
	var ids []string
	for _, name := range e.files() {
		if file, err := e.open(name); err == nil {
			if id, _ := claude.ExportOf(file.Content); id != "" {
				ids = append(ids, id)
			}
			_ = file.Close() // only read
		}
	}
	return ids
}

// remove takes agents away that were written here and are as they were written.
func (e *exporter) remove(wanted func(id, file string) bool) error {
	for _, name := range e.files() {
		if err := e.removeOne(name, wanted); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) removeOne(name string, wanted func(id, file string) bool) error {
	file, err := e.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read, or gone
	id, whole := claude.ExportOf(file.Content)
	if id == "" || !wanted(id, name) {
		return nil
	}
	d := exportedJSON{Directive: id, Path: file.Path, State: exportRemoved}
	if !whole {
		d.State, d.Reason = exportLeft, "it was changed since it was written"
	} else if err := file.Remove(); err != nil {
		return tool.Faultf(tool.CodeUnsupported, "%s is not taken away: %w", file.Path, err)
	}
	e.done = append(e.done, d)
	return nil
}

func writeExported(d display, done []exportedJSON) error {
	if len(done) == 0 {
		_, err := fmt.Fprintln(d.out, "nothing to do: there are no signed directives in this space, and no agents that stand for some")
		return err
	}
	var t table
	for _, one := range done {
		color := green
		if one.State == exportLeft {
			color = red
		}
		where := one.Path
		if one.Reason != "" {
			where = strings.TrimSpace(where + " " + one.Reason)
		}
		t.add(cell{one.State, color}, text(one.Directive), text(where))
	}
	d.width = 0 // paths and reasons are there to be read whole
	return t.write(d)
}
