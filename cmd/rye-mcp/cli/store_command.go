package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// storeCommand is the verb about where threads are kept.
const storeCommand = "store"

func newStoreCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   storeCommand,
		Short: "Where threads are kept: look, check, move them",
		Long: `Threads are kept on this machine, in a SQLite database of each project, or on a
PostgreSQL server that several machines share: "rye-mcp help postgres".`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStoreStatusCommand(sys, opts), newStoreCheckCommand(sys, opts), newStoreMigrateCommand(sys, opts))
	return cmd
}

func newStoreStatusCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say where the threads of this project are kept, and how that is",
		Args:  usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			dir, err := projectDir(sys, *opts)
			if err != nil {
				return err
			}
			p, err := openProject(cmd.Context(), sys, dir, zerolog.Nop())
			if err != nil {
				return err
			}
			defer func() { _ = p.Close() }() // nothing was written
			return storeStatus(cmd.Context(), sys, p, asJSON)
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// storeState is what "store status" writes with --json.
type storeState struct {
	Store    string `json:"store"`          // sqlite or postgres
	Where    string `json:"where"`          // folder, or address without its secrets
	From     string `json:"from,omitempty"` // what says so
	Project  string `json:"project,omitempty"`
	FellBack string `json:"fell_back,omitempty"` // from where, as that cannot be reached
	Threads  int    `json:"threads"`
	Running  int    `json:"running"`
	Queued   int    `json:"queued"`
	Bytes    int64  `json:"bytes"`

	Due    []dueState   `json:"due,omitempty"`
	Server *serverState `json:"server,omitempty"`
}

type serverState struct {
	Version       string  `json:"version"`
	ReadOnly      bool    `json:"read_only"`
	Encrypted     bool    `json:"encrypted"`
	Schema        string  `json:"schema,omitempty"`
	SchemaVersion int64   `json:"schema_version"`
	Known         int64   `json:"known_version"` // by this program
	Connections   int     `json:"connections"`
	Ours          int     `json:"our_connections"`
	Most          int     `json:"max_connections"`
	Projects      int     `json:"projects"`
	AnswerMS      float64 `json:"answer_ms"`
	HintMS        float64 `json:"hint_ms"` // from a commit to who waits for it
	HintsLost     bool    `json:"hints_lost,omitempty"`
	ClockMS       float64 `json:"clock_ms"` // how far the server's clock is before this one
}

func storeStatus(ctx context.Context, sys System, p *project, asJSON bool) error {
	st, err := storeStateOf(ctx, sys, p)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(sys.Stdout, st)
	}
	_, err = fmt.Fprint(sys.Stdout, st.text(p.now()))
	return err
}

// storeStateOf looks at the store of a project.
func storeStateOf(ctx context.Context, sys System, p *project) (s storeState, err error) {
	at := p.state.site
	s = storeState{Store: "sqlite", Where: p.state.Home().Dir, From: at.from}
	if p.state.fellBack.shared() {
		s.FellBack = p.state.fellBack.url.String()
	}
	if at.shared() {
		s.Store, s.Where, s.Project = "postgres", at.url.String(), at.project
		if s.Server, err = serverStateOf(ctx, p); err != nil {
			return s, err
		}
	}
	if now, err := p.store.Now(ctx); err != nil || now == nil {
		return s, err
	}
	stats, err := p.store.Stats(ctx, store.StatsSince{Used: p.state.finder.Now(), Created: p.state.finder.Now()})
	if err != nil {
		return s, err
	}
	counts, err := p.store.Census(ctx)
	if err != nil {
		return s, err
	}
	kept, err := p.store.Footprint(ctx)
	if err != nil {
		return s, err
	}
	s.Threads, s.Running, s.Queued, s.Bytes = stats.Threads, counts.Running, counts.Queued, kept.Bytes
	s.Due, err = dueOf(ctx, sys, p)
	return s, err
}

func serverStateOf(ctx context.Context, p *project) (*serverState, error) {
	in, err := inspect(ctx, p)
	if err != nil {
		return nil, err
	}
	return &serverState{
		Version: in.Version, ReadOnly: in.ReadOnly, Encrypted: in.Encrypted, Schema: in.Schema, SchemaVersion: in.Has, Known: in.Knows,
		Connections: in.Connections, Ours: in.Ours, Most: in.Most, Projects: in.Projects,
		AnswerMS: milliseconds(in.Answer), HintMS: milliseconds(in.Hint), HintsLost: in.HintsLost, ClockMS: milliseconds(in.Clock),
	}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func inspect(ctx context.Context, p *project) (postgres.Inspection, error) {
	server, err := p.server.get(ctx)
	if err != nil {
		return postgres.Inspection{}, err
	}
	in, err := server.Inspect(ctx, p.state.site.project)
	return in, p.state.site.fault(err)
}

// text is the state for people.
func (s storeState) text(now time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, plain.Line(fmt.Sprintf(format, args...))) // the server may say anything
	}
	where := s.Where
	if where == "" {
		where = "made with the first thread"
	}
	line("store", "%s, %s", s.Store, where)
	if s.From != "" {
		line("said by", "%s", s.From)
	}
	if s.FellBack != "" {
		line("fell back", "%s cannot be reached: its threads are not seen here, and new ones stay here", s.FellBack)
	}
	if s.Project != "" {
		line("project", "%s", s.Project)
	}
	line("threads", "%d, of which %d run and %d wait for a slot; %s", s.Threads, s.Running, s.Queued, sizeOf(s.Bytes))
	for _, d := range s.Due {
		line(d.To, "%s", d.text(now))
	}
	if v := s.Server; v != nil {
		schema := fmt.Sprintf("%s, version %d of %d", v.Schema, v.SchemaVersion, v.Known)
		if v.Schema == "" {
			schema = "none yet: the first thread makes it"
		}
		encrypted := map[bool]string{true: "encrypted", false: "not encrypted"}[v.Encrypted]
		line("server", "PostgreSQL %s, %s, answers in %.1f ms", v.Version, encrypted, v.AnswerMS)
		line("schema", "%s", schema)
		line("connections", "%d of %d, of which %d are of rye-mcp; %d projects", v.Connections, v.Most, v.Ours, v.Projects)
		if v.HintsLost {
			line("hints", "do not come through; others are looked for each second")
		} else {
			line("hints", "after %.1f ms", v.HintMS)
		}
	}
	return b.String()
}

func newStoreCheckCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look for what is wrong with where threads are kept, and say what to do",
		Long: `Look at the server: whether it can be reached and written to, its schema, its
connections, who waits for locks, its clock, and whether hints come through; then read
all rows of the project. Exit code 1 when something keeps threads from running.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			dir, err := projectDir(sys, *opts)
			if err == nil {
				dir, err = canonical(dir)
			}
			if err != nil {
				return err
			}
			found := newDoctor(sys, *opts, dir).storeFindings(cmd.Context(), true)
			sound := !slices.ContainsFunc(found, func(f finding) bool { return f.Level == levelFail })
			for i := range found {
				found[i].Check = storeCommand
			}
			return conclude(sys, asJSON, doctorJSON{Success: sound, Project: dir, Checks: found}, sound, func() error {
				return writeFindings(newDisplay(sys, *opts), dir, found)
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// storeFindings is what is to be said of where threads are kept. All reads all rows.
func (d *doctor) storeFindings(ctx context.Context, all bool) []finding {
	state, err := newState(ctx, d.sys, d.project)
	if err != nil {
		f := tool.AsFault(err)
		try := advice(f)
		if usage, is := errors.AsType[*usageError](err); is {
			try = usage.try
		}
		return []finding{failf(try, "%v", err)}
	}
	if !state.site.shared() {
		found := []finding{okf("threads are kept on this machine; rye-mcp help postgres says how several share them")}
		if all {
			found = append(found, d.data(ctx)...)
		}
		return append(found, d.dueHere(state)...)
	}
	p, err := assembleAround(ctx, d.sys, state, zerolog.Nop(), plainStore, threadItems{})
	if err != nil {
		return []finding{failf("", "%v", err)}
	}
	defer func() { _ = p.Close() }() // nothing was written
	if !state.site.shared() {
		return []finding{warnf("rye-mcp store check, when the server is back", "%s cannot be reached; threads are kept on this machine meanwhile (store.fallback)", state.fellBack.url)}
	}
	in, err := inspect(ctx, p)
	if err != nil {
		f := tool.AsFault(err)
		return []finding{failf(f.Try, "%s", f.Message)}
	}
	found := serverFindings(in, state.site)
	if in.Schema == "" || in.Has != in.Knows {
		return found
	}
	if all {
		found = append(found, rowFindings(ctx, p)...)
	}
	left, err := dueOf(ctx, d.sys, p)
	return append(found, dueFindings(left, err, p.now())...)
}

// Bounds of what is warned of.
const (
	mostClock  = 2 * time.Second       // leases are of some seconds
	mostAnswer = 50 * time.Millisecond // a thread makes some hundred statements
	fewLeft    = 10                    // connections
)

// serverFindings is what an inspection comes to.
func serverFindings(in postgres.Inspection, at site) []finding {
	found := []finding{okf("PostgreSQL %s at %s, project %s", in.Version, at.url, at.project)}
	add := func(is bool, f finding) {
		if is {
			found = append(found, f)
		}
	}
	add(in.ReadOnly, failf("name the primary, or several hosts with target_session_attrs=read-write", "the server only reads, as a standby does"))
	add(in.Has > in.Knows, failf("install the newer rye-mcp", "the project's schema has version %d, this program knows %d", in.Has, in.Knows))
	add(in.Schema != "" && in.Has < in.Knows, warnf("rye-mcp threads list, as the role that owns the schema", "the project's schema has version %d; this program brings it to %d", in.Has, in.Knows))
	add(in.Most-in.Connections < fewLeft, warnf("raise max_connections", "%d of %d connections are in use", in.Connections, in.Most))
	add(in.Clock.Abs() > mostClock, warnf("synchronize both clocks (NTP)", "the server's clock and that of this machine are %s apart", in.Clock.Abs().Round(time.Millisecond)))
	add(in.Answer > mostAnswer, warnf("run threads nearer to the server", "a statement takes %s", in.Answer.Round(time.Millisecond)))
	add(in.HintsLost, warnf("connect past the pooler, or one in session mode, where a second matters", "hints do not come through: who waits for a thread looks each second"))
	add(!in.Encrypted && !in.Local, warnf("add sslmode=verify-full to the URL", "the connection to the server is not encrypted"))
	for _, w := range in.Waiting {
		found = append(found, warnf(fmt.Sprintf("look at process %d of the server in pg_stat_activity; SELECT pg_terminate_backend(…) ends it", w.Behind[0]),
			"%s (process %d of the server) waits since %s for a lock that another has", w.Name, w.PID, w.For.Round(time.Second)))
	}
	return found
}

// rowFindings reads all rows of the project.
func rowFindings(ctx context.Context, p *project) []finding {
	err := p.store.Check(ctx)
	if damage, is := errors.AsType[*store.CorruptError](err); is {
		return []finding{failf("restore the server's backup", "%v", damage)}
	}
	if err != nil {
		return []finding{failf("", "%v", p.state.site.fault(err))}
	}
	return []finding{okf("all rows of the project can be read")}
}

// threadStore says where threads are kept, for doctor.
func (d *doctor) threadStore(ctx context.Context) []finding { return d.storeFindings(ctx, false) }

// keptElsewhere reports whether threads are kept by a server.
func (d *doctor) keptElsewhere(ctx context.Context) bool {
	at, err := siteOf(ctx, d.sys, d.roots)
	return err == nil && at.shared()
}
