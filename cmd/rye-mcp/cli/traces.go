package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/runtime/announce"
	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/telemetry"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// tracesCommand is the hidden verb, below thread, of the process that sends spans.
const tracesCommand = "traces"

// serviceName is what spans say they come from unless the user names something else.
const serviceName = "rye-mcp"

// telemetryVariables are the user's variables about where spans go. The process of a
// thread has them apart from its environment. Variables that a tool has put into the
// environment of a program that it starts are not the user's, and do not count.
func telemetryVariables(sys System) []string {
	if len(sys.Outer) > 0 {
		return telemetry.Variables(sys.Outer)
	}
	own := telemetry.Variables(sys.Environ)
	if len(own) == 0 || belowThread(sys) {
		return nil
	}
	return own
}

// outerOf is the environment that a thread's process has apart from its own. Variables that
// a model has put into that of a program it runs say nothing about where the user's traces go.
func outerOf(sys System) []string {
	outer := slices.Concat(sys.Outer, sys.Environ)
	if len(sys.Outer) > 0 || len(telemetry.Variables(sys.Environ)) == 0 || !belowThread(sys) {
		return outer
	}
	return slices.DeleteFunc(outer, func(entry string) bool { return len(telemetry.Variables([]string{entry})) > 0 })
}

// traces follows the ends of threads where the user wants spans to be sent; else it is
// nil.
func (p *project) traces(sys System, log zerolog.Logger) announce.Traces {
	variables := telemetryVariables(sys)
	if len(variables) == 0 || !telemetry.Wanted(lookUp(variables)) {
		return nil
	}
	return &traces{project: p, sys: sys, log: log, variables: variables}
}

// lookUp is getenv of a list of NAME=value.
func lookUp(variables []string) func(string) string {
	return func(name string) string {
		for _, entry := range slices.Backward(variables) {
			if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
				return entry[len(name)+1:]
			}
		}
		return ""
	}
}

// traces notes whose spans are due and starts who sends them.
type traces struct {
	*project
	sys       System
	log       zerolog.Logger
	variables []string
}

// Ending implements [announce.Traces].
func (t *traces) Ending(id thread.ID) {
	if err := t.due().Note(id); err != nil {
		t.log.Warn().Err(err).Str("thread_id", string(id)).Msg("traces: it could not be noted that those of the thread are due")
	}
}

// Ended implements [announce.Traces]. It starts a sender unless one is at work.
func (t *traces) Ended() {
	if err := t.startUnlessSending(); err != nil {
		t.log.Warn().Err(err).Msg("traces: no sender could be started; the next one sends what is due")
	}
}

func (p *project) due() due.Notes { return telemetry.NotesIn(p.state.Home().Traces()) }

func (t *traces) startUnlessSending() error {
	if sending, err := t.isSending(tracesCommand); err != nil || sending {
		return err
	}
	return t.startSender(t.sys, tracesCommand, unmarked(slices.Concat(t.sys.Outer, t.sys.Environ)), t.variables...)
}

// unmarked is what of an environment a sender of spans gets: no keys, and nothing that
// makes it a part of a thread.
func unmarked(environ []string) []string {
	env, _ := process.ThreadEnv(environ)
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == process.ParentVariable || name == process.ParentProjectVariable || name == process.TraceVariable
	})
}

// sendLeftTraces starts a sender when something is due that nobody was started for, as
// when the process that ended a thread was killed at once.
func (p *project) sendLeftTraces(ctx context.Context, sys System, log zerolog.Logger) error {
	wanted, ok := p.traces(sys, log).(*traces)
	if !ok {
		return nil
	}
	if there, err := p.store.Now(ctx); err != nil || there == nil || p.due().Count() == 0 {
		return err
	}
	return wanted.startUnlessSending() //nolint:contextcheck // it outlives the server
}

func newTracesCommand(sys System, opts *options) *cobra.Command {
	return newSenderCommand(sys, opts, tracesCommand, "Send the spans that are due", func(ctx context.Context, with sending) error {
		settings, wanted, err := telemetry.SettingsFrom(lookUp(with.variables), serviceName, version())
		if err != nil || !wanted {
			return err
		}
		return with.tracesSender(with.sys, settings, with.log).Run(ctx)
	})
}

func (p *project) tracesSender(sys System, settings telemetry.Settings, log zerolog.Logger) *telemetry.Sender {
	return &telemetry.Sender{
		Settings: settings, Due: p.due(), Rows: p.store, Records: p.records(), Place: p.state.Home().Seal.Place(), Version: version(),
		Lease: func() (life.Hold, error) { return p.life.Lease(tracesCommand) },
		Now:   sys.Now, Wait: wait, Crashpoints: sys.Crashpoints, Log: log,
	}
}

// wait waits, or returns why it does not.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// traces tells where spans go. Values of headers are not shown.
func (d *doctor) traces(context.Context) []finding {
	const guide = "rye-mcp help traces"
	variables := telemetryVariables(d.sys)
	settings, wanted, err := telemetry.SettingsFrom(lookUp(variables), serviceName, version())
	switch {
	case err != nil:
		return []finding{warnf(guide, "%v", err)}
	case !wanted && len(variables) > 0:
		return []finding{okf("not sent: OTEL_EXPORTER_OTLP_ENDPOINT is not set, or others say so; %s", guide)}
	case !wanted:
		return []finding{okf("not sent; %s", guide)}
	}
	what := "without what is said in them"
	if settings.Content {
		what = "with prompts and results"
	}
	return []finding{okf("sent to %s, with %s, %s", settings.Place(), counted(len(settings.Headers), "header"), what)}
}
