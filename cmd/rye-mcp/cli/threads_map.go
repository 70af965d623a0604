package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type mapFlags struct {
	items       string
	concurrency int
	maxSpend    float64
	requestKey  string
	model       string
	timeout     time.Duration
	json        bool
}

func newThreadsMapCommand(sys System, opts *options) *cobra.Command {
	var flags mapFlags
	complete := completer{sys: sys, opts: opts}
	cmd := &cobra.Command{
		Use:   "map DIRECTIVE --items FILE",
		Short: "Run a directive once for each item of a list",
		Long: `Run a directive in a thread of its own for each item of a list, and wait until all
have ended. The items are the inputs of the threads: a file with a JSON array of
objects, or with one object a line; - reads standard input.

The list is a set that is stored. The same command again, also after a crash or
a reboot, keeps what has completed and runs only what failed or is new. Ctrl-C
ends the waiting, not the set; rye-mcp threads cancel ID ends the set.

Exit code 0 when every item completed, 1 when one did not, 3 when the time was
up before that.`,
		Example: `  rye-mcp threads map review/file --items files.json --concurrency 4
  git ls-files '*.go' | jq -R '{path: .}' | rye-mcp threads map review/file --items - --max-spend 2`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			req, err := flags.request(cmd, sys, args[0])
			if err != nil {
				return err
			}
			p, err := openNamed(cmd.Context(), sys, *opts)
			if err != nil {
				return err
			}
			return errors.Join(mapThreads(cmd.Context(), sys, *opts, p, req, flags.json), p.Close())
		}),
		ValidArgsFunction: complete.directive,
	}
	f := cmd.Flags()
	f.StringVar(&flags.items, "items", "", "file with the items, or -")
	f.IntVar(&flags.concurrency, "concurrency", 0, fmt.Sprintf("how many work at the same time (default %d)", fanout.DefaultConcurrency))
	f.Float64Var(&flags.maxSpend, "max-spend", 0, "US dollars for all items together (default: the limits of the directive, once for each item)")
	f.StringVar(&flags.requestKey, "request-key", "", "a name for this list: with it, what another has completed is not used")
	f.StringVar(&flags.model, "model", "", "provider/model, model or tier instead of the directive's")
	f.Var(asDuration(&flags.timeout, 0), "timeout", "longest wait, such as 90s or 10m; 0 only starts the set (default: no bound)")
	jsonFlag(cmd, &flags.json)
	completeWith(cmd, "model", complete.models)
	return cmd
}

// request reads the command line and the items.
func (f mapFlags) request(cmd *cobra.Command, sys System, directive string) (control.MapRequest, error) {
	req := control.MapRequest{Request: fanout.Request{
		Directive: directive, Concurrency: f.concurrency, RequestKey: f.requestKey, Model: f.model,
	}}
	if f.items == "" {
		return req, &usageError{message: "--items is missing", try: "--items FILE.json, or --items -"}
	}
	if f.timeout < 0 {
		return req, &usageError{message: fmt.Sprintf("--timeout %s is below 0", f.timeout), try: "--timeout 10m"}
	}
	if cmd.Flags().Changed("timeout") {
		seconds := f.timeout.Seconds()
		req.WaitSeconds, req.Async = &seconds, f.timeout == 0
	}
	if cmd.Flags().Changed("max-spend") {
		most, err := thread.Dollars(f.maxSpend)
		if err != nil {
			return req, &usageError{message: fmt.Sprintf("--max-spend %v: %v", f.maxSpend, err), try: "--max-spend 2"}
		}
		req.MaxSpend = &most
	}
	var err error
	req.Items, err = readItems(sys, f.items)
	return req, err
}

// maxItemsFile is how long the list of items may be, in bytes.
const maxItemsFile = 16 << 20

// tryItems is what a list of items looks like.
const tryItems = `a list of the inputs of each item, such as [{"name":"Ada"},{"name":"Grace"}]`

// readItems reads a JSON array of objects, or objects one after the other.
func readItems(sys System, path string) ([]map[string]any, error) {
	in := sys.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // only read
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(bufio.NewReader(in), maxItemsFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(raw) > maxItemsFile {
		return nil, fmt.Errorf("%s is longer than %d bytes; give paths of files as inputs, or fewer items", path, maxItemsFile)
	}
	objects, err := splitItems(bytes.TrimSpace(raw))
	if err != nil {
		return nil, &usageError{message: fmt.Sprintf("%s: %v", path, err), try: tryItems}
	}
	items := make([]map[string]any, len(objects))
	for i, object := range objects {
		if items[i], err = object.Map(); err != nil {
			return nil, &usageError{message: fmt.Sprintf("%s: item %d: %v", path, i, err), try: tryItems}
		}
	}
	return items, nil
}

func splitItems(raw []byte) (objects []tool.Object, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	array := bytes.HasPrefix(raw, []byte("["))
	if array {
		if _, err := dec.Token(); err != nil {
			return nil, err
		}
	}
	for dec.More() {
		if len(objects) == fanout.MaxItems {
			return nil, fanout.TooMany(fanout.MaxItems + 1)
		}
		var object tool.Object
		if err := dec.Decode(&object); err != nil {
			return nil, fmt.Errorf("item %d: %w", len(objects), err)
		}
		objects = append(objects, object)
	}
	if array {
		if _, err := dec.Token(); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the list")
	}
	return objects, nil
}

func mapThreads(ctx context.Context, sys System, opts options, p *project, req control.MapRequest, asJSON bool) error {
	line := startProgress(sys, "starting "+counted(len(req.Items), "item"))
	by := listening(atTerminal(sys), func(now control.Progress) {
		says := now.LastSay
		if len(now.Waiting) > 0 {
			says = "one waits for an answer: rye-mcp threads approve " + string(now.Waiting[0].ThreadID)
		}
		line.say("%d of %d ended, %s  %s", now.Done, now.Total, now.Spend, says)
	})
	var set thread.ID
	by.Started = func(id thread.ID, _ string) { set = id }
	answer, err := p.control.Map(ctx, by, req)
	line.end()
	if err != nil {
		if set != "" && ctx.Err() != nil {
			_, _ = fmt.Fprintf(sys.Stderr, "set %s goes on; the same command waits for it, rye-mcp threads cancel %[1]s ends it\n", set)
		}
		return err
	}
	if asJSON {
		err = writeJSON(sys.Stdout, answer)
	} else {
		err = writeMapped(newDisplay(sys, opts), answer)
	}
	if err != nil {
		return err
	}
	return mapVerdict(sys, answer, req.Async, asJSON)
}

func writeMapped(d display, a fanout.Answer) error {
	t := table{header: []string{"ITEM", "STATUS", "THREAD", "RESULT"}}
	for _, one := range a.Items {
		said := one.Result
		if one.Error != "" {
			said = one.Error
		}
		t.add(text(strconv.Itoa(one.Item)), cell{string(one.Status), stateColor(one.Status)}, text(string(one.ThreadID)),
			text(plain.Shorten(plain.Line(said), maxSaid)))
	}
	if len(a.Items) == 0 {
		return nil
	}
	return t.write(d)
}

// mapVerdict sums up, and chooses the exit code.
func mapVerdict(sys System, a fanout.Answer, async, quiet bool) error {
	c := a.Counts
	sum := fmt.Sprintf("set %s: %d of %s completed", a.ThreadID, c.Completed, counted(c.Items, "item"))
	if c.Reused > 0 {
		sum += fmt.Sprintf(", %d of them before", c.Reused)
	}
	sum += fmt.Sprintf("; %d failed, %d work, %d wait; %s", c.Failed, c.Working, c.Waiting, a.Spend)
	switch {
	case a.Success, async && !a.Status.Terminal():
		if !quiet {
			_, _ = fmt.Fprintln(sys.Stderr, sum)
		}
		return nil
	case a.Status.Terminal():
		if !quiet {
			say(sys.Stderr, sum, "the same command runs what has not completed")
		}
		return exitError{code: exitFailure}
	}
	if !quiet {
		say(sys.Stderr, "the time is up; "+sum, "the same command waits further")
	}
	return exitError{code: exitTimeout}
}
