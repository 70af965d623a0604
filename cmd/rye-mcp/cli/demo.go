package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/termsvg"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

const demoDirective = "rye/demo/orchestrate"

// demoLookEvery is how often the demo asks its server how the threads stand:
// it is a client, and MCP tells clients only about calls they have made.
const demoLookEvery = 150 * time.Millisecond

func newDemoCommand(sys System, opts *options) *cobra.Command {
	var (
		real, plain bool
		picture     string
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See an orchestrating thread and its three children at work",
		Long: `Start the real server as a child over stdio, connect to it as an MCP client, and
let it run a directive that starts three children, waits for them and gathers
their results. The model is scripted: no key, no network. Everything is written
below a temporary folder, which is left for you to look at. Ctrl-C cancels the
threads.

With --svg what is shown, up to the result, is recorded into a file instead: a
picture that moves, without scripts, for a README or a page.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &demo{sys: sys, opts: *opts, real: real, screen: newScreen(newDisplay(sys, *opts), !plain && onTerminal(sys.Stdout))}
			if picture != "" {
				return d.record(cmd.Context(), picture)
			}
			return cmp.Or(d.run(cmd.Context()), d.screen.heeded.lost())
		},
	}
	cmd.Flags().BoolVar(&real, "real", false, "use the configured provider instead of the scripted model")
	cmd.Flags().BoolVar(&plain, "plain", false, "write lines instead of redrawing the tree")
	cmd.Flags().StringVar(&picture, "svg", "", "record what is shown into this file, as SVG; a picture that is there is replaced")
	cmd.MarkFlagsMutuallyExclusive("plain", "svg")
	return cmd
}

type demo struct {
	sys    System
	opts   options
	real   bool
	screen *screen
	dir    string // temporary folder
	brief  bool   // nothing is told of where things lie
}

// run is the demo: a project in a temporary folder, the server, one call, the
// tree until it has ended.
func (d *demo) run(ctx context.Context) error {
	if err := d.makeProject(); err != nil {
		return err
	}
	// An interrupt cancels the threads through the server, so it must live on.
	client, err := d.connect(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	d.screen.print("rye-mcp serves %d tools over stdio to this demo.\nCalling rye_execute: %s, thread fork, async.\n\n",
		client.tools, demoDirective)

	var started view.Started
	err = client.call(context.WithoutCancel(ctx), "rye_execute", map[string]any{
		"item_type": "directive", "item_id": demoDirective, "thread": "fork", "async": true,
	}, &started)
	if err != nil {
		return err
	}
	result, err := d.watch(ctx, client, started.ThreadID)
	if ctx.Err() != nil {
		d.screen.print("\ncancelling …\n")
		id := map[string]any{"thread_id": started.ThreadID}
		if err := client.call(context.WithoutCancel(ctx), "cancel_thread", id, &stop.Stopped{}); err != nil {
			return goesOn(started.ThreadID, goesOnUncancelled, err, fmt.Sprintf("%s threads cancel %s --project %s", d.looking(), started.ThreadID, d.project()))
		}
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	d.tell(started.ThreadID, result)
	if result.Status != thread.Completed {
		return exitError{code: exitFailure}
	}
	return nil
}

// A recording is of a terminal of this size: the demo's lines fit in.
const (
	recordedColumns = 84
	recordedRows    = 24
)

// record runs the demo on a terminal that is recorded, and writes the recording.
func (d *demo) record(ctx context.Context, path string) error {
	terminal := termsvg.New(termsvg.Options{Title: "rye-mcp demo", Columns: recordedColumns, Rows: recordedRows, Now: d.sys.Now})
	d.screen, d.brief = newScreen(display{out: terminal, width: recordedColumns, colors: true}, true), true
	d.screen.print("%s rye-mcp demo\n", d.screen.paint(green, "$"))
	if err := d.run(ctx); err != nil {
		return err
	}
	if err := (outFile{name: path, perm: 0o644, example: "demo.svg", renews: "<svg"}).write(terminal.SVG()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.sys.Stdout, "wrote %s\nRemove what the demo made: rm -r %s\n", path, d.dir)
	return err
}

func (d *demo) project() string { return filepath.Join(d.dir, "project") }

// makeProject prepares a project and, unless real providers are asked for, a
// user space of its own.
func (d *demo) makeProject() error {
	dir, err := os.MkdirTemp("", "rye-mcp-demo-")
	if err != nil {
		return err
	}
	d.dir = dir
	if err := os.MkdirAll(filepath.Join(d.project(), ".ai"), 0o755); err != nil {
		return err
	}
	if d.real {
		return nil
	}
	user := filepath.Join(dir, "user")
	if _, _, err := ensureKey(user); err != nil {
		return err
	}
	return trust.WriteSettings(item.User, user, "agent/agent.yaml", []byte("provider:\n  default: scripted\n"))
}

// watch shows the tree until the root has ended.
func (d *demo) watch(ctx context.Context, client *demoClient, root thread.ID) (view.Result, error) {
	waited := make(chan error, 1)
	var answer view.WaitResult
	go func() {
		waited <- client.call(ctx, "wait_threads", map[string]any{"thread_ids": []thread.ID{root}, "timeout": 600}, &answer)
	}()
	tick := time.NewTicker(demoLookEvery)
	defer tick.Stop()
	for over := false; ; {
		var list view.List
		if err := client.call(ctx, "list_threads", map[string]any{}, &list); err != nil {
			return view.Result{}, err
		}
		d.screen.tree(list.Threads)
		if over {
			return answer.Results[root], nil
		}
		select {
		case err := <-waited:
			if err != nil {
				return view.Result{}, err
			}
			over = true
		case <-tick.C:
		case <-ctx.Done():
			return view.Result{}, context.Cause(ctx)
		}
	}
}

// looking is how a command line begins that finds the demo's threads.
func (d *demo) looking() string {
	if d.real {
		return d.command()
	}
	return "USER_SPACE=" + filepath.Join(d.dir, "user") + " " + d.command() // the demo's own user space
}

// tell says what came out and where things lie.
func (d *demo) tell(root thread.ID, r view.Result) {
	d.screen.print("\n%s: %s\n", r.Status, demoSummary(r))
	if d.brief {
		return
	}
	look := d.looking()
	d.screen.print("\nTranscripts:  %s\nLook at one:  %s threads show %s --project %s\nRemove all:   rm -r %s\n",
		filepath.Join(d.project(), ".ai", "state", "threads"), look, root, d.project(), d.dir)
	d.screen.print("\nFor your editor (mcpServers):  \"rye\": {\"command\": %q, \"args\": [\"--stdio\"]}\n", d.command())
	if strings.Contains(d.executable(), "go-build") {
		d.screen.print("(go install ./cmd/rye-mcp puts rye-mcp into %s)\n", "$(go env GOPATH)/bin")
	}
}

func demoSummary(r view.Result) string {
	if summary, ok := r.Outputs["summary"].(string); ok {
		return summary
	}
	if r.Error != "" {
		return r.Error
	}
	return r.Result
}

func (d *demo) executable() string {
	path, err := d.sys.Executable()
	if err != nil {
		return "rye-mcp"
	}
	return path
}

// command is how this program is called by hand. "go run" builds it into a
// folder that is gone afterwards.
func (d *demo) command() string {
	if path := d.executable(); !strings.Contains(path, "go-build") {
		return path
	}
	return "rye-mcp"
}

// environ is the environment of the server: the demo's own spaces unless real
// providers are asked for, and no parent thread.
func (d *demo) environ() []string {
	env := append(slices.Clone(d.sys.Environ), // the last of several entries holds
		"RYE_PARENT_THREAD_ID=", "RYE_CACHE_DIR="+filepath.Join(d.dir, "cache"))
	if !d.real {
		env = append(env, "USER_SPACE="+filepath.Join(d.dir, "user"))
	}
	return env
}

var errDemoServer = errors.New("the demo's server")

func demoError(tool string, err error) error {
	return fmt.Errorf("%w: %s: %w", errDemoServer, tool, err)
}
