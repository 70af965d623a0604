package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/runtime/digest"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

func newHooksCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hooks",
		Short: "See what hooks do",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newHooksExplainCommand(sys, opts))
	return cmd
}

// explainFlags are the flags of hooks explain.
type explainFlags struct {
	run   runFlags // its inputs
	event string
	json  bool
}

func newHooksExplainCommand(sys System, opts *options) *cobra.Command {
	var flags explainFlags
	complete := completer{sys: sys, opts: opts}
	cmd := &cobra.Command{
		Use:   "explain DIRECTIVE",
		Short: "Show which hooks a thread of a directive would fire, in which order, and why not",
		Long: `Show, event by event, the hooks that a thread of a directive would fire, in the
order they run, with the layer and the file and line each comes from.

Before a run the data of resolve_extends, build_system_prompt and thread_started
are known, so conditions are decided there: "yes", or "no" with the reason. At
other events "maybe" stands for what depends on the event. Inputs that are not
given count as missing. Nothing is run.`,
		Example: `  rye-mcp hooks explain review/security
  rye-mcp hooks explain review/security -i path=src --event error`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: complete.directive,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return explainHooks(cmd.Context(), sys, *opts, args[0], flags)
		}),
	}
	cmd.Flags().StringArrayVarP(&flags.run.inputs, "input", "i", nil, "an input as `name=value`; repeat for more")
	cmd.Flags().StringVar(&flags.event, "event", "", "only this event")
	completeWith(cmd, "input", complete.inputs)
	completeFlag(cmd, "event", hookEvents)
	jsonFlag(cmd, &flags.json)
	return cmd
}

func hookEvents() []string { return texts(hook.Events()) }

func explainHooks(ctx context.Context, sys System, opts options, directive string, flags explainFlags) error {
	if flags.event != "" {
		if _, err := hook.ParseEvent(flags.event); err != nil {
			return &usageError{message: err.Error(), try: "--event " + strings.Join(hookEvents(), ", ")}
		}
	}
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	planner := plan.Planner{
		Project: roots.Project, Resolver: digest.Promised(resolve.New(roots)), Env: placeholderEnv(roots),
		Settings: &settings.Source{Config: config.New(roots), Trust: newGate(sys, roots), Providers: providerSource(sys, roots.Project)},
	}
	given, err := explainInputs(sys, planner.Resolver, directive, flags.run)
	if err != nil {
		return action.Fault(err)
	}
	hooks, err := planner.ExplainHooks(ctx, plan.ExplainRequest{Directive: directive, Inputs: given, Event: flags.event})
	if err != nil {
		return err
	}
	return conclude(sys, flags.json, hooks, true, func() error { return writeHookPlan(sys, newDisplay(sys, opts), hooks) })
}

// explainInputs reads the inputs that are given, and the defaults of the others.
func explainInputs(sys System, r *resolve.Resolver, directive string, flags runFlags) (map[string]any, error) {
	found, err := r.Find(item.Directive, directive)
	if err != nil {
		return nil, err
	}
	doc, err := found.Directive()
	if err != nil {
		return nil, err
	}
	given, err := givenInputs(doc, sys.Getenv, flags)
	if err != nil {
		return nil, err
	}
	values, err := inputs.FromStrings(doc, given)
	if err != nil {
		return nil, err
	}
	for _, in := range doc.Inputs {
		if _, ok := values[in.Name]; !ok && in.Default != nil {
			values[in.Name] = in.Default
		}
	}
	return values, nil
}

func writeHookPlan(sys System, d display, plan *plan.HookPlan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "directive %s (%s)\n", plan.Directive, plain.Line(plan.Path))
	if len(plan.Extends) > 0 {
		b.WriteString("extends " + strings.Join(plan.Extends, " → "))
		if plan.ExtendsBy != "" {
			b.WriteString(", by hook " + plain.Line(plan.ExtendsBy))
		}
		b.WriteByte('\n')
	}
	if len(plan.Suppressed) > 0 {
		fmt.Fprintf(&b, "suppresses %s\n", strings.Join(plan.Suppressed, ", "))
	}
	silent := []string{}
	if _, err := d.out.Write([]byte(b.String())); err != nil {
		return err
	}
	for _, event := range plan.Events {
		if len(event.Hooks) == 0 {
			silent = append(silent, string(event.Event))
			continue
		}
		if err := writeEventPlan(d, event); err != nil {
			return err
		}
	}
	if len(silent) > 0 {
		lines := plain.Wrap("no hooks at "+strings.Join(silent, ", "), d.width)
		if _, err := fmt.Fprintf(d.out, "\n%s\n", strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	for _, w := range plan.Warnings {
		_, _ = fmt.Fprintf(sys.Stderr, "Warning: %s\n", plain.Line(w))
	}
	return nil
}

func writeEventPlan(d display, event plan.EventPlan) error {
	title := d.paint(cyan, string(event.Event))
	if event.Winner != "" {
		title += "  " + plain.Line(event.Winner) + " decides"
	}
	if _, err := fmt.Fprintf(d.out, "\n%s\n", title); err != nil {
		return err
	}
	t := table{header: []string{"#", "FIRES", "HOOK", "LAYER", "DOES", "FROM", "CONDITION, OR WHY NOT"}}
	for _, h := range event.Hooks {
		order := ""
		if h.Order > 0 {
			order = fmt.Sprint(h.Order)
		}
		t.add(text(order), cell{h.Fires, firesColor(h.Fires)}, text(h.ID), text(fmt.Sprintf("%d %s", h.Layer, h.LayerName)),
			text(strings.Join(h.Does, ", ")), text(fmt.Sprintf("%s:%d", h.Path, h.Line)), cell{reasonOf(h), dim})
	}
	if d.width == 0 || t.width() <= d.width {
		return t.write(d)
	}
	return writeHookLines(d, event.Hooks)
}

// writeHookLines tells of each hook below the other, where a table has no room.
func writeHookLines(d display, hooks []plan.HookForecast) error {
	var b strings.Builder
	for _, h := range hooks {
		fmt.Fprintf(&b, "  %s %s", d.paint(firesColor(h.Fires), h.Fires), plain.Line(h.ID))
		if h.Order > 0 {
			fmt.Fprintf(&b, ", number %d", h.Order)
		}
		fmt.Fprintf(&b, " (%s)\n", h.LayerName)
		for _, said := range []struct{ name, text string }{
			{"does", strings.Join(h.Does, ", ")}, {"from", fmt.Sprintf("%s:%d", h.Path, h.Line)}, {"when", reasonOf(h)},
		} {
			const indent = 9
			for i, line := range plain.Wrap(plain.Line(said.text), d.width-indent) {
				if i > 0 {
					said.name = ""
				}
				fmt.Fprintf(&b, "    %s %s\n", d.paint(dim, fmt.Sprintf("%-4s", said.name)), line)
			}
		}
	}
	_, err := io.WriteString(d.out, b.String())
	return err
}

// reasonOf is the condition, and what else keeps a hook from firing.
func reasonOf(h plan.HookForecast) string {
	switch {
	case h.Why == "" && h.Condition == "":
		return "always"
	case h.Why == "":
		return h.Condition
	case h.Condition == "" || h.Fires == plan.FiresNo:
		return h.Why
	default:
		return h.Condition + "; " + h.Why
	}
}

func firesColor(fires string) color {
	switch fires {
	case plan.FiresYes:
		return green
	case plan.FiresMaybe:
		return yellow
	default:
		return dim
	}
}
