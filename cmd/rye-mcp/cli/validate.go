package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/validate"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/executor"
)

// validateFlags are the flags of validate.
type validateFlags struct {
	all   bool
	space []string
	kind  string
	json  bool
}

func newValidateCommand(sys System, opts *options) *cobra.Command {
	var flags validateFlags
	cmd := &cobra.Command{
		Use:   "validate [ITEM|PATH|GLOB...]",
		Short: "Find what would fail when items and settings are used",
		Long: `Find what would fail when directives, tools, knowledge and settings are used, with
file and line. An error is what cannot work; a warning is what works otherwise
than it seems, and what is not signed yet. Nothing is executed or changed.

Items are named as for "rye-mcp sign". --all takes those of the project and the
user space and all settings, and groups many findings of one cause. Errors of the
settings are always told: no thread starts with them. Exit code 1 when there is an
error.`,
		Example: `  rye-mcp validate review/security
  rye-mcp validate .ai/directives/review/*.md
  rye-mcp validate --all --json`,
		ValidArgsFunction: completer{sys: sys, opts: opts}.items,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return runValidate(cmd.Context(), sys, *opts, args, flags)
		}),
	}
	cmd.Flags().BoolVar(&flags.all, "all", false, "everything in the project and the user space")
	cmd.Flags().StringSliceVar(&flags.space, "space", nil, "with --all, only these `spaces`: project, user, system")
	cmd.Flags().StringVar(&flags.kind, "type", "", "directive, tool or knowledge (default: whatever has the id)")
	completeFlag(cmd, "type", itemTypes)
	completeFlag(cmd, "space", func() []string { return texts(item.Spaces()) })
	jsonFlag(cmd, &flags.json)
	return cmd
}

// itemTypes lists what --type can be.
func itemTypes() []string { return texts(item.Kinds()) }

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = string(one)
	}
	return out
}

func runValidate(ctx context.Context, sys System, opts options, names []string, flags validateFlags) error {
	if err := flags.check(names); err != nil {
		return err
	}
	v, err := newValidator(sys, opts)
	if err != nil {
		return err
	}
	var entries []resolve.Entry
	if flags.all {
		entries, err = v.Entries(flags.spaces()...)
		entries = slices.DeleteFunc(entries, func(e resolve.Entry) bool { return flags.kind != "" && string(e.Kind) != flags.kind })
	} else {
		entries, err = namedEntries(v.Resolver, flags.kind, names)
	}
	if err != nil {
		return err
	}
	line := startProgress(sys, "looking")
	found, err := v.Items(ctx, entries, flags.all)
	line.end()
	if err != nil {
		return err
	}
	return conclude(sys, flags.json, found, found.Success, func() error { return writeReport(newDisplay(sys, opts), found, flags.all) })
}

// check refuses flags that make no sense together.
func (f validateFlags) check(names []string) error {
	for _, space := range f.space {
		if !slices.Contains(texts(item.Spaces()), space) {
			return &usageError{message: fmt.Sprintf("space %q is unknown", space), try: "--space " + strings.Join(texts(item.Spaces()), ", ")}
		}
	}
	if f.kind != "" {
		if _, err := item.ParseKind(f.kind); err != nil {
			return &usageError{message: err.Error(), try: "rye-mcp validate --help"}
		}
	}
	switch {
	case f.all && len(names) > 0:
		return &usageError{message: "--all leaves nothing to name", try: "rye-mcp validate --all"}
	case !f.all && len(names) == 0:
		return &usageError{message: "nothing is named", try: "rye-mcp validate --all"}
	case !f.all && len(f.space) > 0:
		return &usageError{message: "--space belongs to --all", try: "rye-mcp validate --all --space " + f.space[0]}
	}
	return nil
}

func (f validateFlags) spaces() []item.Space {
	if len(f.space) == 0 {
		return []item.Space{item.Project, item.User}
	}
	var spaces []item.Space
	for _, name := range f.space {
		spaces = append(spaces, item.Space(name))
	}
	return spaces
}

// newValidator puts together what items are validated against. Nothing of it
// needs the database.
func newValidator(sys System, opts options) (*validate.Validator, error) {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return nil, err
	}
	gate := newGate(sys, roots)
	settings, env := config.New(roots).Read(), placeholderEnv(roots)
	tools, err := unsignedTools(sys, roots, gate, settings)
	if err != nil {
		return nil, err
	}
	actsOnThreads := func(id string) bool { return slices.Contains(action.ThreadItemIDs(), id) }
	// The settings of a project are validated whether or not they count. Nothing that
	// they name is called.
	resolver := resolve.New(roots)
	box := opening.Toolbox{
		Resolver: resolver, Executor: tools, Actions: action.New(action.Deps{Threads: operation.Actions{Table: operation.All()}}),
	}
	return &validate.Validator{
		Palette:  box.Palette,
		Resolver: resolver, Trust: gate.Once(settings.Integrity),
		Config:    config.AsWritten(roots).Read(),
		Providers: providerSource(sys, roots.Project).With(settings),
		Runs: func(found *resolve.Found) (notes []string, err error) {
			if actsOnThreads(found.ID) {
				return nil, nil
			}
			t, err := tools.Of(found)
			if err != nil {
				return nil, err
			}
			return t.Notes, nil
		},
		Env: func(name string) bool { _, ok := env[name]; return ok },
	}, nil
}

// unsignedTools tells how tools would be run if they were signed, and runs none.
func unsignedTools(sys System, roots resolve.Roots, gate *trust.Gate, settings *config.Snapshot) (*executor.Executor, error) {
	p := &project{trust: gate}
	unchecked := &trust.Gate{Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil }, Shipped: system.Has}
	return newExecutor(sys, roots, resolve.New(roots), p.builtins(sys, roots.User), p.primitives(), nil, unchecked, nil, memoryIn(settings))
}

// namedEntries are the items that a command line names, each once.
func namedEntries(r *resolve.Resolver, kind string, names []string) ([]resolve.Entry, error) {
	actions := action.New(action.Deps{Resolver: r})
	var all []resolve.Entry
	for _, name := range names {
		name, err := signName(name)
		if err != nil {
			return nil, err
		}
		entries, err := actions.Named(kind, name)
		if err != nil {
			return nil, signFault(err)
		}
		for _, e := range entries {
			if !slices.ContainsFunc(all, func(other resolve.Entry) bool { return other.Path == e.Path }) {
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// Of one cause so many findings are told in a report of all items, when there are
// more than maxOfOneCause; the others are counted.
const (
	maxOfOneCause = 5
	examples      = 3
)

// writeReport tells what was found. Grouped puts many findings of one cause under one
// line.
func writeReport(d display, r validate.Report, grouped bool) error {
	var b strings.Builder
	rest := r.Findings
	if grouped {
		rest = d.writeCauses(&b, r.Findings)
	}
	for _, f := range rest {
		d.writeFinding(&b, f)
	}
	for _, first := range r.Requests {
		if !grouped {
			fmt.Fprintf(&b, "%s: its first request takes %s\n", plain.Line(first.Item), first.Text())
		}
	}
	if len(r.Findings) > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s: %s, %s\n", counted(r.Items, "item"), counted(r.Errors, "error"), counted(r.Warnings, "warning"))
	_, err := d.out.Write([]byte(b.String()))
	return err
}

func (d display) writeFinding(b *strings.Builder, f validate.Finding) {
	fmt.Fprintf(b, "%s: %s: %s %s\n", plain.Line(f.Place()), d.paint(shadeOf(f.Level), string(f.Level)), plain.Line(f.Message), d.paint(dim, "["+string(f.Code)+"]"))
	if f.Try != "" {
		fmt.Fprintf(b, "    %s %s\n", d.paint(dim, "Try:"), plain.Line(f.Try))
	}
}

func shadeOf(l validate.Level) color {
	if l == validate.Error {
		return red
	}
	return yellow
}

// writeCauses tells the causes that have many findings, errors first, with examples.
// It returns the other findings.
func (d display) writeCauses(b *strings.Builder, found []validate.Finding) (rest []validate.Finding) {
	type cause struct {
		level validate.Level
		code  validate.Code
	}
	all := map[cause][]validate.Finding{}
	var order []cause
	for _, f := range found {
		c := cause{f.Level, f.Code}
		if all[c] == nil {
			order = append(order, c)
		}
		all[c] = append(all[c], f)
	}
	slices.SortStableFunc(order, func(x, y cause) int {
		return cmp.Or(cmp.Compare(x.level, y.level), len(all[y])-len(all[x])) // "error" comes before "warning"
	})
	for _, c := range order {
		of := all[c]
		if len(of) <= maxOfOneCause {
			continue
		}
		fmt.Fprintf(b, "%s: %s, for example:\n", d.paint(shadeOf(c.level), string(c.level)+" "+string(c.code)), counted(len(of), "time"))
		for _, f := range of[:examples] {
			d.writeFinding(b, f)
		}
		fmt.Fprintf(b, "    and %d more; --json lists all\n\n", len(of)-examples)
	}
	return slices.DeleteFunc(slices.Clone(found), func(f validate.Finding) bool { return len(all[cause{f.Level, f.Code}]) > maxOfOneCause })
}
