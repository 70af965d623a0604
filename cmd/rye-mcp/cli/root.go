package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// options are the flags every command has.
type options struct {
	project string
	color   colorMode
}

// serveOptions are the flags of the server.
type serveOptions struct {
	stdio   bool
	logFile string
	tools   string   // list of groups
	allowed []string // folders that projects must lie in; none: anywhere
	// outputSchemas: clients are told what answers look like.
	outputSchemas bool
}

// rootFor is the root with the commands that arguments can name. The process of a
// thread has its own alone: the others would take memory in every live thread. A server
// that is started as editors do it has none, and answers sooner.
func rootFor(sys System, args []string) *cobra.Command {
	forThread := len(args) > 0 && args[0] == threadCommand
	if !forThread && !slices.Equal(args, []string{"--stdio"}) {
		return newRoot(sys)
	}
	sys = sys.takingStore()
	root, opts := newBareRoot(sys)
	if forThread {
		root.AddCommand(newThreadCommand(sys, opts))
	}
	return root
}

func newRoot(sys System) *cobra.Command {
	sys = sys.takingStore()
	root, opts := newBareRoot(sys)
	root.AddCommand(
		newRunCommand(sys, opts),
		newThreadsCommand(sys, opts),
		newTopCommand(sys, opts),
		newLangGraphCommand(sys, opts),
		newReplayCommand(sys, opts),
		newTestCommand(sys, opts),
		newInitCommand(sys, opts),
		newInstallCommand(sys, opts),
		newExportCommand(sys, opts),
		newDemoCommand(sys, opts),
		newVersionCommand(sys),
		newThreadCommand(sys, opts),
		newServeCommand(sys, opts),
		newUICommand(sys, opts),
		newMetricsCommand(sys),
		newWorkerCommand(sys, opts),
		newWorkersCommand(sys, opts),
		newStoreCommand(sys, opts),
		newDoctorCommand(sys, opts),
		newModelsCommand(sys, opts),
		newConfigCommand(sys, opts),
		newTrustCommand(sys, opts),
		newValidateCommand(sys, opts),
		newHooksCommand(sys, opts),
		newItemsCommand(sys, opts),
		newMemoryCommand(sys, opts),
		newSignCommand(sys, opts),
		newMCPCommand(sys, opts),
		newKeysCommand(sys, opts),
		newExitCodesTopic(),
	)
	root.SetHelpCommand(newHelpCommand(sys, opts))
	return root
}

// newBareRoot is the root without commands, and the flags that they share.
func newBareRoot(sys System) (*cobra.Command, *options) {
	var (
		opts         = options{color: colorAuto}
		serve        serveOptions
		tellsVersion bool
	)
	root := &cobra.Command{
		Use:   "rye-mcp",
		Short: "An MCP server whose tools run whole LLM conversations as threads",
		Long: `rye-mcp gives an MCP client threads: LLM conversations described by Markdown
directives, each in a process of its own with a budget, permissions and a
transcript.

An editor starts it as "rye-mcp --stdio". Without arguments it serves stdio when
its standard input is not a terminal, and shows this help when it is.

"rye-mcp help" lists guides too, and "rye-mcp help first-directive" shows the first.`,
		Example: `  rye-mcp init                       # prepare this folder and a signing key
  rye-mcp demo                       # see threads at work, without any key
  rye-mcp run hello --input name=Ada # run a directive and stream its answer
  rye-mcp validate hello             # find what would fail in a directive
  rye-mcp items search 'review*'     # find directives, tools and knowledge
  rye-mcp sign hello                 # sign a directive that you have changed
  rye-mcp threads list               # what ran here, and what it cost`,
		Args:          usageArgs(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tellsVersion {
				return writeVersion(sys, false)
			}
			if serve.stdio || !onTerminal(sys.Stdin) {
				return serveStdio(cmd.Context(), sys, opts, serve)
			}
			return cmd.Help()
		},
	}
	root.SetIn(sys.Stdin)
	root.SetOut(sys.Stdout)
	root.SetErr(sys.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolVar(&serve.stdio, "stdio", false, "serve MCP on standard input and output")
	root.Flags().BoolVar(&tellsVersion, "version", false, "print the version")
	serve.addFlags(root, "none is refused")
	root.PersistentFlags().StringVar(&opts.project, "project", "", "project folder (default: the working directory)")
	root.PersistentFlags().Var(&opts.color, "color", "colours in what is shown: auto, always or never")
	root.PersistentFlags().StringVar(&sys.store.flag, storeFlag, "", "where threads are kept: local, or the URL of a PostgreSQL (default: store.yaml, see help postgres)")
	completeFlag(root, "color", colorModes)
	completeWith(root, "project", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	return root, &opts
}

// usageArgs makes a usage error of what cobra refuses about arguments, which says what the
// command takes. An argument that looks like a mistyped command is answered with the command.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		try := cmd.CommandPath() + " --help"
		if len(args) > 0 {
			cmd.SuggestionsMinimumDistance = 2
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				try = cmd.CommandPath() + " " + near[0]
			}
		}
		message := err.Error()
		if !cmd.HasSubCommands() { // else an unknown command was named
			try = tryArguments(cmd)
			message = fmt.Sprintf("%s takes %s; it is given %s", cmd.CommandPath(), takenBy(cmd), counted(len(args), "argument"))
		}
		return &usageError{message: message, try: try}
	}
}

// takenBy are the arguments of a command as its help has them.
func takenBy(cmd *cobra.Command) string {
	_, takes, _ := strings.Cut(cmd.Use, " ")
	return cmp.Or(takes, noArguments)
}

const noArguments = "no arguments"
