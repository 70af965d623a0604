package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxActiveDays is a hundred years.
const maxActiveDays = 36500

func newThreadsHealthCommand(sys System, opts *options) *cobra.Command {
	var (
		asJSON, all bool
		days        int
	)
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Show how the threads of the project are: how many, how large, what is stuck",
		Long: `Show how the threads of the project are: how many, how large, what is stuck.
The folders of 1000 threads at most are looked at; --all goes through every one.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > maxActiveDays {
				return &usageError{message: fmt.Sprintf("--active-days %d is not between 1 and %d", days, maxActiveDays), try: "--active-days 7"}
			}
			return showHealth(cmd.Context(), sys, *opts, health.Request{ActiveDays: days, All: all}, asJSON)
		}),
	}
	cmd.Flags().IntVar(&days, "active-days", 7, "a thread used today or on one of so many days before counts as active")
	cmd.Flags().BoolVar(&all, "all", false, "go through every thread folder, however many there are")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func showHealth(ctx context.Context, sys System, opts options, req health.Request, asJSON bool) error {
	health := health.Report{Success: true, ActiveDays: req.ActiveDays, Stuck: []thread.ID{}, Growth: health.Growth{Days: req.ActiveDays}}
	err := inProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		there, err := p.hasThreads(ctx, sys)
		if err != nil || !there {
			health.MaxRunning = p.control.Settings.Begin().Slots()
			return err
		}
		line := startProgress(sys, "looking at the threads")
		defer line.end()
		health, err = operation.ThreadHealth.Run(ctx, p.control, listening(atTerminal(sys), howFar(line, "looking at the threads")), req)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(sys.Stdout, health)
	}
	return writeHealth(newDisplay(sys, opts), health)
}

// howFar shows on a line how far a look at all threads is.
func howFar(line *progress, what string) func(health.Looked) {
	return func(l health.Looked) { line.say("%s: %d of %d", what, l.Done, l.Total) }
}

func writeHealth(d display, h health.Report) error {
	var t table
	row := func(name, format string, args ...any) { t.add(cell{name, dim}, text(fmt.Sprintf(format, args...))) }
	row("threads", "%d", h.ThreadCount)
	row("active", "%d used within %s", h.ActiveThreads, counted(h.ActiveDays, "day"))
	row("running", "%d of %s", h.Running, counted(h.MaxRunning, "slot"))
	row("queued", "%d", h.Queued)
	row("spend today", "%s", h.SpendToday)
	row("tokens", "%.0f on average, %d at most", h.AvgTokenCount, h.MaxTokenCount)
	in := ""
	if h.Partial {
		in = fmt.Sprintf(" in %s, of more", counted(h.Folders, "folder"))
	}
	row("checkpoints", "%d%s", h.CheckpointCount, in)
	row("orphaned folders", "%d%s", h.OrphanedFolders, in)
	for _, name := range slices.Sorted(maps.Keys(h.SizesMB)) {
		of := ""
		if name == "transcripts" || name == "artifacts" || name == "thread_logs" {
			of = in
		}
		row(strings.ReplaceAll(name, "_", " "), "%.1f MiB%s", h.SizesMB[name], of)
	}
	row("growth", "%.1f threads and about %.1f MiB a day, by the last %s", h.Growth.ThreadsPerDay, h.Growth.MBPerDay, counted(h.Growth.Days, "day"))
	for _, name := range h.SetAside {
		t.add(cell{"set aside", yellow}, text(name+", a damaged database"))
	}
	for _, id := range h.Stuck {
		t.add(cell{"stuck", yellow}, text(string(id)))
	}
	if err := t.write(d); err != nil {
		return err
	}
	for _, try := range healthAdvice(h) {
		if _, err := fmt.Fprintf(d.out, "%s %s\n", d.paint(dim, "Try:"), try); err != nil {
			return err
		}
	}
	return nil
}

// healthAdvice is what a person can do, where h.Next is for models.
func healthAdvice(h health.Report) []string {
	var tries []string
	if len(h.Stuck) > 0 {
		tries = append(tries, "rye-mcp threads tail "+string(h.Stuck[0]))
	}
	for _, what := range h.Advice {
		tries = append(tries, command(what))
	}
	if h.Partial {
		tries = append(tries, "rye-mcp threads health --all")
	}
	return tries
}

// command is advice for models as a person gives it to a terminal.
func command(advice string) string {
	return strings.NewReplacer(
		"reconcile_threads with apply", "rye-mcp threads reconcile --apply", "cleanup_threads with older_than ", "rye-mcp threads cleanup --older-than ",
	).Replace(advice)
}

func newThreadsReconcileCommand(sys System, opts *options) *cobra.Command {
	var (
		in     health.ReconcileInput
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Find, and with --apply mend, where registry, ledger and thread folders disagree",
		Long: `Find where registry, ledger, thread folders and their knowledge entries disagree,
and say what puts it right. Compared are the newest 1000 threads, all that have
not ended, all open budgets and as many folders; --all compares every thread,
some seconds for tens of thousands. Threads whose process is gone are settled, as
every look at them does; beside that nothing is changed without --apply.

--apply brings everything to what threads have signed. What is not signed is not
believed; it is left as it is and named. Nothing of a thread is removed; it can be
repeated, and others may work meanwhile. Exit code 1 when something is found that
is not mended.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error { return reconcile(cmd.Context(), sys, *opts, in, asJSON) }),
	}
	cmd.Flags().BoolVar(&in.All, "all", false, "compare every thread, however many there are")
	cmd.Flags().BoolVar(&in.Apply, "apply", false, "mend what can be mended")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func reconcile(ctx context.Context, sys System, opts options, in health.ReconcileInput, asJSON bool) error {
	report := health.Reconciliation{Success: true, Settled: []thread.ID{}, Findings: []health.Finding{}}
	err := withProject(ctx, sys, opts, func(ctx context.Context, p *project) (err error) {
		line := startProgress(sys, "comparing registry, ledger and folders")
		defer line.end()
		report, err = operation.ReconcileThreads.Run(ctx, p.control, listening(atTerminal(sys), howFar(line, "comparing registry, ledger and folders")), in)
		return err
	})
	if err != nil && !errors.Is(err, errNoThreads) {
		return err
	}
	return conclude(sys, asJSON, report, report.Success, func() error {
		return writeReconciliation(newDisplay(sys, opts), report)
	})
}

func writeReconciliation(d display, r health.Reconciliation) error {
	threads := counted(r.Threads, "thread")
	if r.Partial {
		threads = fmt.Sprintf("%d of %s", r.Threads, counted(r.Total, "thread"))
	}
	if _, err := fmt.Fprintf(d.out, "looked at %s, %s and %s\n",
		threads, counted(r.Folders, "folder"), counted(r.Budgets, "budget")); err != nil {
		return err
	}
	for _, id := range r.Settled {
		if _, err := fmt.Fprintf(d.out, "settled %s, whose process was gone\n", id); err != nil {
			return err
		}
	}
	for _, try := range reconcileAdvice(r) {
		if _, err := fmt.Fprintln(d.out, d.paint(dim, "Try:")+" "+try); err != nil {
			return err
		}
	}
	if len(r.Findings) == 0 {
		_, err := fmt.Fprintln(d.out, d.paint(green, "nothing disagrees"))
		return err
	}
	t := table{header: []string{"FOUND", "THREAD", "DETAIL", "TO MEND IT"}}
	for _, f := range r.Findings {
		if f.Mended {
			t.add(cell{f.Kind, green}, text(string(f.ThreadID)), text(f.Detail), cell{"mended: " + f.Mend, green})
		} else {
			t.add(cell{f.Kind, yellow}, text(string(f.ThreadID)), text(f.Detail), text(f.Mend))
		}
	}
	return t.write(d)
}

// reconcileAdvice is what a person can do, where r.Next is for models.
func reconcileAdvice(r health.Reconciliation) []string {
	var tries []string
	if r.Mendable {
		tries = append(tries, "rye-mcp threads reconcile --apply")
	}
	if r.Partial {
		tries = append(tries, "rye-mcp threads reconcile --all, which compares every thread")
	}
	return tries
}
