package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// newThreadsCallCommand offers every operation of a table, as models have them.
func newThreadsCallCommand(sys System, opts *options, operations *operation.Table) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "call OPERATION [NAME=VALUE...]",
		Short: "Call an operation on threads as a model does",
		Long: `Call an operation on threads as a model does, with its parameters by name, and
write its answer as JSON. A value may be JSON; a name that is given several times
makes a list. Ids may be shortened. "rye-mcp threads call OPERATION --help" tells
what an operation does.

Exit code 0 when there is an answer, whatever it says.`,
		Example: `  rye-mcp threads call get_budget thread_id=latest amount=0.25
  rye-mcp threads call wait_threads thread_ids=review-17 thread_ids=review-18 mode=any`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, e := range operations.Entries() {
		cmd.AddCommand(newOperationCommand(sys, opts, operations, e))
	}
	return cmd
}

func newOperationCommand(sys System, opts *options, operations *operation.Table, e operation.Entry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   e.Name + " [NAME=VALUE...]",
		Short: e.Title,
		Args:  usageArgs(cobra.ArbitraryArgs),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			given, err := parameters(args)
			if err != nil {
				return err
			}
			return inProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
				if _, err := p.hasThreads(ctx, sys); err != nil {
					return err
				}
				return callOperation(ctx, sys, p, operations, e.Name, given)
			})
		}),
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) { // the parameters come from a schema, which is not made before
		cmd.Long = wrapped(e.Doc) + "\n\nParameters:\n" + parametersOf(e)
		cmd.Parent().HelpFunc()(cmd, args)
	})
	return cmd
}

func callOperation(
	ctx context.Context, sys System, p *project, operations *operation.Table, name string, given map[string][]string,
) error {
	for _, ids := range []string{"thread_id", "thread_ids", "parent_id"} {
		for i, id := range given[ids] {
			whole, err := completeID(ctx, p, id)
			if err != nil {
				return err
			}
			given[ids][i] = string(whole)
		}
	}
	params, err := paramsJSON(given)
	if err != nil {
		return err
	}
	call, err := operations.Decode(name, params)
	if err != nil {
		return err
	}
	answer, err := call.Run(ctx, p.control, callerOf(sys, p))
	if err != nil {
		return err
	}
	return writeJSON(sys.Stdout, answer)
}

// callerOf is who calls an operation: a client like others, or the thread that has
// started this process, which may do no more here than with its own tools.
func callerOf(sys System, p *project) action.Caller {
	by := action.Caller{Env: tool.Env{Project: p.path, TraceID: traceID(sys)}, By: "rye-mcp threads call"}
	if p.control.Threads.Parent != "" {
		by.InThread, by.By, by.Env.ThreadID = true, "", p.control.Threads.Parent
	}
	return by
}

// parameters reads NAME=VALUE; a name may be given several times.
func parameters(args []string) (map[string][]string, error) {
	given := map[string][]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, &usageError{message: fmt.Sprintf("%q is not NAME=VALUE", arg), try: "thread_id=latest"}
		}
		given[name] = append(given[name], value)
	}
	return given, nil
}

// paramsJSON writes parameters as texts, and as lists of texts where there are
// several. An operation reads a number, or JSON, from the text.
func paramsJSON(given map[string][]string) (json.RawMessage, error) {
	params := map[string]any{}
	for name, values := range given {
		params[name] = values
		if len(values) == 1 {
			params[name] = values[0]
		}
	}
	return json.Marshal(params)
}

// parametersOf lists the parameters of an operation for a person.
func parametersOf(e operation.Entry) string {
	var input struct {
		Properties map[string]struct{ Type, Description string }
		Required   []string
	}
	raw, err := e.Input()
	if err == nil {
		err = json.Unmarshal(raw, &input)
	}
	if err != nil || len(input.Properties) == 0 {
		return "  none"
	}
	var names []string
	for name := range input.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if x, y := slices.Contains(input.Required, a), slices.Contains(input.Required, b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	for _, name := range names {
		p := input.Properties[name]
		needed := ""
		if slices.Contains(input.Required, name) {
			needed = ", needed"
		}
		fmt.Fprintf(&b, "  %s (%s%s)\n", name, p.Type, needed)
		for _, line := range plain.Wrap(p.Description, helpWidth-6) {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// helpWidth is how wide the texts of help are.
const helpWidth = 80

func wrapped(text string) string { return strings.Join(plain.Wrap(text, helpWidth), "\n") }
