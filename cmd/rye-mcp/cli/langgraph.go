package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/mirror"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newLangGraphCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "langgraph",
		Short: "Keep copies of your threads on a LangGraph server",
		Long: `A LangGraph server can have a copy of each of your threads: what its row says as
metadata, and what was said as messages of its state. It is sent when turns and threads
end, by a process of its own; while the server is away, what is due waits.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLangGraphInitCommand(sys, opts), newLangGraphSyncCommand(sys, opts), newLangGraphForkCommand(sys, opts))
	return cmd
}

// usualMirror is where a development server listens.
const usualMirror = langgraph.Scheme + "http://127.0.0.1:2024"

func newLangGraphInitCommand(sys System, opts *options) *cobra.Command {
	var graph, server string
	cmd := &cobra.Command{
		Use:   "init [URL]",
		Short: "Name the server in your settings, and look whether it will do",
		Long: `Write the server's URL into ~/.ai/config/agent/mirror.yaml, from where every project of
yours has it, and look whether the server answers and has the graph that threads belong
to. Threads that were before it are sent by "rye-mcp langgraph sync --all".

With --server, a folder gets what the development server from npm needs to have that
graph: langgraph.json, rye.mjs and package.json. Nothing that is there is replaced.`,
		Example: `  rye-mcp langgraph init langgraph+http://127.0.0.1:2024
  rye-mcp langgraph init langgraph+https://team.example --graph agent
  rye-mcp langgraph init --server ./langgraph`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := usualMirror
			if len(args) > 0 {
				url = args[0]
			}
			return initLangGraph(cmd.Context(), sys, *opts, url, graph, server)
		},
	}
	cmd.Flags().StringVar(&graph, "graph", "", `graph of the server that threads belong to (default "rye")`)
	cmd.Flags().StringVar(&server, "server", "", "write the files of a development server into this folder")
	return cmd
}

func initLangGraph(ctx context.Context, sys System, opts options, url, graph, server string) error {
	at, err := langgraph.ParsePlace(url)
	if err != nil {
		return &usageError{message: err.Error(), try: "rye-mcp langgraph init " + usualMirror}
	}
	w, err := newWriting(sys, opts, config.MirrorSettings, true)
	if err != nil {
		return err
	}
	if err := w.set("mirror.url", at.String()); err != nil {
		return err
	}
	if graph != "" {
		if err := w.set("mirror.graph", graph); err != nil {
			return err
		}
		// The node of another graph is not known.
		if err := w.set("mirror.node", `""`); err != nil {
			return err
		}
	}
	if server != "" {
		if err := writeServer(sys, server); err != nil {
			return err
		}
	}
	return lookAtMirror(ctx, sys, w.roots)
}

// lookAtMirror tells whether the server that the settings name will do. One that does not
// answer yet is no failure: copies that are due wait for it.
func lookAtMirror(ctx context.Context, sys System, roots resolve.Roots) error {
	set, _, err := config.MirrorOf(config.New(resolve.Roots{User: roots.User, Project: roots.Project, System: system.FS()}).Read())
	if err != nil {
		return err
	}
	at, err := langgraph.ParsePlace(set.URL)
	if err != nil {
		return err
	}
	if at.Plain() {
		_, _ = fmt.Fprintf(sys.Stderr, "Warning: what is said in threads goes to %s without encryption\n", at)
	}
	client := langgraph.New(langgraph.Options{
		Place: at, Now: sys.Now, Timeout: 10 * time.Second,
		Key: func(ctx context.Context) (string, error) { return providerSource(sys, roots.Project).Key(ctx, set.Key) },
	})
	defer client.Close()
	if why, try := mirrorTrouble(ctx, client, set.Graph); why != "" {
		_, _ = fmt.Fprintf(sys.Stderr, "Warning: %s\nTry:   %s\n", plain.Line(why), try)
		return nil
	}
	_, err = fmt.Fprintf(sys.Stdout, "%s answers, and has the graph %s\n", at, set.Graph)
	return err
}

//go:embed langgraphserver
var serverFiles embed.FS

// writeServer writes the files of a development server, over nothing.
func writeServer(sys System, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	names, err := fs.Glob(serverFiles, "langgraphserver/*")
	if err != nil {
		return err
	}
	told := &heeding{Writer: sys.Stdout}
	for _, name := range names {
		content, err := serverFiles.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.Base(name))
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			_, _ = fmt.Fprintf(sys.Stderr, "%s is there, and stays as it is\n", plain.Line(to))
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(told, "%s written\n", plain.Line(to))
	}
	_, _ = fmt.Fprintf(told, "To start it: cd %s && npm install && npm run dev\n", plain.Line(dir))
	return told.lost()
}

func newLangGraphSyncCommand(sys System, opts *options) *cobra.Command {
	var all, dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Send what is due, and show what differs",
		Long: `Send the copies of the threads that are due to the server, and show which are not what
the threads are now. With --all, all threads of the project are sent as a whole, and
copies of those that were deleted go; --dry-run only looks.

Exit code 0 when nothing differs, 1 when something does or stays due.`,
		Example: `  rye-mcp langgraph sync
  rye-mcp langgraph sync --all
  rye-mcp langgraph sync --dry-run --json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			if all && dry {
				return &usageError{message: "--all sends, and --dry-run only looks", try: "rye-mcp langgraph sync --dry-run"}
			}
			return withProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
				return syncMirror(ctx, sys, p, all, dry, asJSON)
			})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "send all threads as a whole, not only what is due")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what differs")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// syncedJSON is what langgraph sync writes with --json.
type syncedJSON struct {
	Sent    int                 `json:"sent"`
	Refused int                 `json:"refused"`
	Left    int                 `json:"left"` // stays due
	Differs []mirror.Difference `json:"differs"`
}

func syncMirror(ctx context.Context, sys System, p *project, all, dry, asJSON bool) error {
	m, err := p.mirroring.mirrorOf(sys, newLog(sys, sys.Stderr))
	if err != nil {
		return err
	}
	defer m.Client.Close()
	var out syncedJSON
	if !dry {
		sent, err := syncNow(ctx, sys, p, m, all)
		if err != nil {
			return mirrorFault(err)
		}
		out.Sent, out.Refused, out.Left = sent.Threads, sent.Refused, sent.Left
	}
	if out.Differs, err = m.Compare(ctx); err != nil {
		return mirrorFault(err)
	}
	if asJSON {
		err = writeJSON(sys.Stdout, out)
	} else {
		err = out.write(sys)
	}
	if err == nil && out.differs() {
		err = exitError{code: exitFailure}
	}
	return err
}

// syncNow sends what is due, or all.
func syncNow(ctx context.Context, sys System, p *project, m *mirror.Mirror, all bool) (mirror.Sent, error) {
	out := p.mirroring.outbox()
	if all {
		if _, err := m.Sweep(ctx, out.Note, sys.Now()); err != nil {
			return mirror.Sent{}, err
		}
		if err := m.EachHere(ctx, func(rec thread.Record) error { return out.Note(ctx, rec.ThreadID) }); err != nil {
			return mirror.Sent{}, err
		}
	}
	sender := p.mirroring.senderTo(m)
	sender.Whole = all
	const patience = 60 // looks, a second each
	for look := 1; ; look++ {
		sent, err := sender.Run(ctx)
		if !errors.Is(err, life.ErrHeld) {
			return sent, err
		}
		if look == patience {
			return sent, &usageError{message: "another process sends copies at the moment", try: "rye-mcp langgraph sync, in a minute"}
		}
		if err := wait(ctx, time.Second); err != nil {
			return sent, err
		}
	}
}

// differs reports whether something is not as it should be.
func (s syncedJSON) differs() bool {
	for _, d := range s.Differs {
		if d.What != mirror.Copied {
			return true
		}
	}
	return s.Left > 0
}

func (s syncedJSON) write(sys System) error {
	words := map[mirror.What]string{
		mirror.Missing: "has no copy there", mirror.Behind: "is not what its copy is", mirror.Extra: "is no more, and its copy still there",
		mirror.Copied: "was copied there; rye-mcp langgraph fork goes on with it here",
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s sent, %d stay due, %d refused\n", counted(s.Sent, "thread"), s.Left, s.Refused)
	for _, d := range s.Differs {
		fmt.Fprintf(&b, "%s  %s %s\n", d.ID, plain.Line(string(d.ThreadID)), words[d.What])
	}
	if len(s.Differs) == 0 {
		b.WriteString("Nothing differs.\n")
	}
	_, err := sys.Stdout.Write([]byte(b.String()))
	return err
}

// mirrorFault says what a person can do about a server.
func mirrorFault(err error) error {
	var try string
	switch {
	case errors.Is(err, langgraph.ErrDenied):
		try = "put the key into LANGGRAPH_API_KEY, or name where it is: rye-mcp config edit mirror --user"
	case errors.Is(err, langgraph.ErrUnreachable), errors.Is(err, langgraph.ErrNonsense):
		try = "start the server; what is due waits. Where it is: rye-mcp config show mirror"
	case errors.Is(err, langgraph.ErrNotFound):
		try = "rye-mcp langgraph init looks whether the server has the graph"
	default:
		return err
	}
	return tool.Faultf(tool.CodeToolFailed, "%w", err).WithTry("%s", try)
}
