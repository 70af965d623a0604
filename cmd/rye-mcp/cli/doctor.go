package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

const (
	// checkTime is how long one check may take.
	checkTime = 10 * time.Second
	// checkAllTime is that where nothing is left out.
	checkAllTime = 10 * time.Minute
	// maxChecking is how many checks run at the same time.
	maxChecking = 4
)

// level says how bad a finding is.
type level string

const (
	levelOK   level = "ok"
	levelWarn level = "warn" // something will not work as it was meant
	levelFail level = "fail" // threads cannot run
)

// finding is one line of the doctor's.
type finding struct {
	Check  string `json:"check"`
	Level  level  `json:"level"`
	Detail string `json:"detail"`
	Try    string `json:"try,omitempty"`
}

func okf(format string, args ...any) finding {
	return finding{Level: levelOK, Detail: fmt.Sprintf(format, args...)}
}

func warnf(try, format string, args ...any) finding {
	return finding{Level: levelWarn, Detail: fmt.Sprintf(format, args...), Try: try}
}

func failf(try, format string, args ...any) finding {
	return finding{Level: levelFail, Detail: fmt.Sprintf(format, args...), Try: try}
}

// doctorJSON is what doctor writes with --json.
type doctorJSON struct {
	Success bool      `json:"success"` // nothing fails
	Project string    `json:"project"`
	Checks  []finding `json:"checks"`
}

func newDoctorCommand(sys System, opts *options) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with this project and this machine, and say what to do",
		Long: `Look at spaces, settings, keys, providers, the thread database, permissions and
the machine. Each line is ok, warn (something will not work as it was meant) or
fail (threads cannot run), with what to do about it. Nothing is changed, except
that a thread found dead is settled, as by every look; no key is shown. Exit code
1 when something fails. Databases of more than 4 MiB are not read whole and the
folders of 1000 threads at most are looked at; --all leaves nothing out.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			return runDoctor(cmd.Context(), sys, *opts, all, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "read databases and thread folders whole, however large and many they are")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func runDoctor(ctx context.Context, sys System, opts options, all, asJSON bool) error {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	if dir, err = canonical(dir); err != nil {
		return err
	}
	line := startProgress(sys, "looking")
	d, limit := newDoctor(sys, opts, dir), checkTime
	if d.all = all; all {
		limit = checkAllTime
	}
	found := diagnose(ctx, d.checks(), limit)
	line.end()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	sound := !slices.ContainsFunc(found, func(f finding) bool { return f.Level == levelFail })
	return conclude(sys, asJSON, doctorJSON{Success: sound, Project: dir, Checks: found}, sound, func() error {
		return writeFindings(newDisplay(sys, opts), dir, found)
	})
}

// doctor is what the checks look at. None of it has to be in order.
type doctor struct {
	sys       System
	opts      options
	all       bool   // nothing is left out that takes long
	project   string // canonical
	user      string // empty when it is not known
	userErr   error
	roots     resolve.Roots
	config    *config.Snapshot
	trust     *trust.Gate
	providers *provider.Registry
}

func newDoctor(sys System, opts options, project string) *doctor {
	opts.project = project
	d := &doctor{sys: sys, opts: opts, project: project}
	if d.user, d.userErr = userSpace(sys); d.userErr != nil {
		d.user = ""
	}
	d.roots = resolve.Roots{Project: project, User: d.user, System: system.FS()}
	d.config = config.New(d.roots).Read()
	d.trust = newGate(sys, d.roots).Once(d.config.Integrity)
	d.providers = providerSource(sys, d.roots.Project).With(d.config)
	return d
}

// environ is that of programs that the doctor runs or looks for, which are none of the project's.
func (d *doctor) environ() []string { return process.Outside(d.sys.Environ, d.project) }

// check is one thing to look at.
type check struct {
	name string
	look func(context.Context) []finding
}

func (d *doctor) checks() []check {
	return []check{
		{"spaces", d.spaces},
		{"signing key", d.signingKey},
		{"signatures", d.signatures},
		{"settings", d.settings},
		{"providers", d.modelProviders},
		{"models", d.models},
		{"memory", d.memory},
		{"thread store", d.threadStore},
		{"state folder", d.stateFolder},
		{"confinement", d.confinement},
		{"database", d.data},
		{"daily spend", d.dailyMoney},
		{"programs", d.programs},
		{"disk", d.disk},
		{"open files", d.openFiles},
		{"notifications", d.notifications},
		{"traces", d.traces},
		{"mirror", d.mirror},
		{"editor", d.editor},
		{"clients", d.clients},
	}
}

// diagnose makes the checks, some at the same time, and returns what they found
// in their order.
func diagnose(ctx context.Context, checks []check, limit time.Duration) []finding {
	found := make([][]finding, len(checks))
	concurrently(len(checks), maxChecking, func(i int) { found[i] = checks[i].within(ctx, limit) })
	return slices.Concat(found...)
}

// within makes a check, and leaves it alone when it does not come back: a folder
// on a server that is gone can keep it for ever.
func (c check) within(ctx context.Context, limit time.Duration) []finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan []finding, 1)
	go func() { done <- c.look(ctx) }()
	var found []finding
	select {
	case found = <-done:
	case <-ctx.Done():
		found = []finding{failf("", "no answer within %s", limit)}
	}
	for i := range found {
		found[i].Check = cmp.Or(found[i].Check, c.name)
	}
	return found
}

func writeFindings(d display, project string, found []finding) error {
	var b strings.Builder
	fmt.Fprintf(&b, "project %s\n\n", plain.Line(project))
	counts := map[level]int{}
	name := 0
	for _, f := range found {
		name = max(name, plain.Columns(f.Check))
	}
	indent := strings.Repeat(" ", len(levelFail)+name+2*columnGap)
	for _, f := range found {
		counts[f.Level]++
		mark := d.paint(levelColor(f.Level), fmt.Sprintf("%-*s", len(levelFail), f.Level))
		fmt.Fprintf(&b, "%s  %-*s  %s\n", mark, name, f.Check, plain.Line(f.Detail))
		if f.Try != "" {
			fmt.Fprintf(&b, "%s%s %s\n", indent, d.paint(dim, "Try:"), plain.Line(f.Try))
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %s, %s\n", counts[levelOK], counted(counts[levelWarn], "warning"), counted(counts[levelFail], "failure"))
	_, err := d.out.Write([]byte(b.String()))
	return err
}

func levelColor(l level) color {
	switch l {
	case levelOK:
		return green
	case levelWarn:
		return yellow
	default:
		return red
	}
}
