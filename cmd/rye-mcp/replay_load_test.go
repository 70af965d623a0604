package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// loadProject has a thread of four turns that starts two others of two turns each, waits for
// them, and reads a file of some KB, as they do.
const loadProject = `
-- .ai/directives/parent.md --
` + "```xml" + `
<directive name="parent" version="1.0.0">
  <metadata>
    <model tier="fast" />
    <limits spend="0.50" spawns="5" />
    <permissions><execute><tool>rye.file-system.read</tool><tool>rye.agent.threads.orchestrator</tool><directive>child</directive></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Lead the work.
-- .ai/directives/child.md --
` + "```xml" + `
<directive name="child" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.05" />
    <permissions><execute><tool>rye.file-system.read</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Do the work.
-- .ai/config/agent/store.yaml --
store: {project: team/app}
-- model.yaml --
turns:
  - match: {first: Do the work, turn: 1}
    tool_calls: [{name: rye_file_system_read, input: {path: notes.txt}}]
  - match: {first: Do the work}
    text: Done.
  - match: {first: Lead the work, turn: 1}
    tool_calls: [{name: rye_file_system_read, input: {path: notes.txt}}]
  - match: {first: Lead the work, turn: 2}
    tool_calls:
      - {name: rye_execute, input: {item_type: directive, item_id: child}}
      - {name: rye_execute, input: {item_type: directive, item_id: child}}
  - match: {first: Lead the work, turn: 3}
    tool_calls: [{name: rye_file_system_read, input: {path: notes.txt}}]
  - match: {first: Lead the work}
    text: All is done.
`

// threadsOfLoad is how many threads one run of it makes.
const threadsOfLoad = 3

// load is the SQL of threads, as a script for pgbench, and the database that it fits.
type load struct {
	cluster    *pgtest.Cluster
	url        string
	schema     string
	first      string // ids of threads that are not of the recording, as a list in SQL
	script     string // its path
	statements int
	sessions   int // that the processes of one run have had
}

// newLoad runs threads on a server that writes down every statement, and makes a script of
// what they have said. Settings are those of the server.
func newLoad(t *testing.T, settings map[string]string, durable bool) *load {
	t.Helper()
	own := map[string]string{"logging_collector": "on", "log_destination": "'jsonlog'", "log_filename": "'server'", "log_file_mode": "0644", "log_rotation_size": "0"}
	for name, value := range settings {
		own[name] = value
	}
	l := &load{cluster: pgtest.Start(t, pgtest.Options{Settings: own, Durable: durable})}
	l.url = l.cluster.Database(t)
	p := newPlace(t, loadProject)
	p.write("notes.txt", []byte(strings.Repeat("A line of notes that says what nobody has said before, and a number: 12345.\n", 60)))
	env := []string{storeurl.Variable + "=" + l.url}
	run := func() {
		p.ryes(env, "run", "parent")
		p.until(func() (bool, string) { // their processes write a little behind their ends
			left := l.ask(t, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'rye-mcp%'")
			return left == "0", left + " connections of threads are left"
		})
	}
	run() // which makes the tables
	var state struct{ Server struct{ Schema string } }
	p.noError(json.Unmarshal([]byte(p.ryes(env, "store", "status", "--json")), &state))
	l.schema = state.Server.Schema + ","
	l.first = l.ask(t, "SELECT string_agg(quote_literal(thread_id), ', ') FROM threads")
	l.cluster.Set(t, "log_statement", "all")
	run()
	l.cluster.Set(t, "log_statement", "none")
	l.write(t, p.ryes(env, "threads", "list", "--json"))
	return l
}

// logged is a line of the server's log.
type logged struct {
	PID         int    `json:"pid"`
	Application string `json:"application_name"`
	Message     string `json:"message"`
	Detail      string `json:"detail"`
}

// write makes the script from the server's log. List is of the threads that there are, of
// which those of the recording came last.
func (l *load) write(t *testing.T, list string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(l.cluster.Socket(), "data", "log", "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var threads struct {
		Threads []struct {
			ID string `json:"thread_id"`
		}
	}
	if err := json.Unmarshal([]byte(list), &threads); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, th := range threads.Threads {
		ids = append(ids, th.ID)
	}
	units, sessions := unitsOf(t, log)
	l.sessions = sessions
	var b strings.Builder
	b.WriteString("\\set replay random(1, 1000000000000)\n\\set ms random(100000, 999999)\n")
	for _, statement := range units {
		b.WriteString(otherThread(statement, ids) + ";\n")
	}
	l.statements = len(units)
	l.script = filepath.Join(l.cluster.Socket(), "threads.sql")
	if err := os.WriteFile(l.script, []byte(b.String()), 0o644); err != nil { //nolint:gosec // pgbench reads it as another user
		t.Fatal(err)
	}
}

var (
	executed = regexp.MustCompile(`(?s)^(?:execute [^:]*|statement): (.*)$`)
	// apart are statements of a process, not of its threads: leases, settings, what only listens.
	apart = regexp.MustCompile(`^(SELECT pg_backend_pid|LISTEN|ALTER SYSTEM|SELECT pg_reload|SET |INSERT INTO rye.workers|UPDATE rye.workers|DELETE FROM rye.workers)`)
)

// unitsOf are the statements of threads, in an order in which one session can say them:
// transactions as a whole, and each when it was committed.
func unitsOf(t *testing.T, log []byte) (statements []string, sessions int) {
	t.Helper()
	open := map[int][]string{}
	seen := map[int]bool{}
	for line := range strings.Lines(string(log)) {
		var l logged
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		said := executed.FindStringSubmatch(l.Message)
		if said == nil || !strings.HasPrefix(l.Application, "rye-mcp") {
			continue
		}
		seen[l.PID] = true
		text := strings.TrimRight(strings.TrimSpace(said[1]), ";")
		if apart.MatchString(text) && open[l.PID] == nil {
			continue
		}
		text = filled(text, l.Detail)
		first, _, _ := strings.Cut(strings.ToUpper(text), ";")
		switch {
		case first == "BEGIN":
			open[l.PID] = []string{text}
		case first == "COMMIT", strings.HasSuffix(text, "; COMMIT"):
			statements = append(append(statements, open[l.PID]...), text)
			delete(open, l.PID)
		case first == "ROLLBACK":
			delete(open, l.PID)
		default:
			if open[l.PID] != nil {
				open[l.PID] = append(open[l.PID], text)
			} else {
				statements = append(statements, text)
			}
		}
	}
	return statements, len(seen)
}

var (
	parameter         = regexp.MustCompile(`(?s)\$(\d+) = (NULL|'(?:[^']|'')*')(?:, |$)`)
	numberedParameter = regexp.MustCompile(`\$(\d+)`)
)

// filled is a statement with its parameters, which the log has as literals.
func filled(text, detail string) string {
	values := map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(strings.TrimPrefix(detail, "parameters: "), -1) {
		values[m[1]] = m[2]
	}
	if len(values) == 0 {
		return text
	}
	return numberedParameter.ReplaceAllStringFunc(text, func(p string) string { return values[p[1:]] })
}

var (
	timeOfDay = regexp.MustCompile(`'(\d{7})\d{6}'`)
)

// otherThread is a statement about threads of other names, made at another time: pgbench
// replaces :replay and :ms, in strings too. No other word behind a colon is one of its variables.
func otherThread(statement string, ids []string) string {
	slices.SortFunc(ids, func(a, b string) int { return len(b) - len(a) })
	for n, id := range ids {
		statement = strings.ReplaceAll(statement, id, fmt.Sprintf("\x00%d\x00", n))
	}
	for n, id := range ids {
		statement = strings.ReplaceAll(statement, fmt.Sprintf("\x00%d\x00", n), id+"-:replay")
	}
	return timeOfDay.ReplaceAllString(statement, "'$1:ms'")
}

// replay runs the script with pgbench.
func (l *load) replay(t *testing.T, args ...string) string {
	t.Helper()
	database := l.url[strings.LastIndex(l.url, "/")+1 : strings.LastIndex(l.url, "?")]
	cmd := l.cluster.Program(t, "pgbench", slices.Concat([]string{"-n", "-M", "simple", "-f", l.script, "-h", l.cluster.Socket(), "-U", "rye"}, args, []string{database})...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c search_path="+l.schema+"rye -c timezone=UTC -c jit=off")
	cmd.Dir = l.cluster.Socket()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
	return string(out)
}

// ask answers a query about the database as one text.
func (l *load) ask(t *testing.T, query string) string {
	t.Helper()
	database := l.url[strings.LastIndex(l.url, "/")+1 : strings.LastIndex(l.url, "?")]
	cmd := l.cluster.Program(t, "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", l.cluster.Socket(), "-U", "rye", "-c", "SET search_path="+l.schema+"rye", "-c", query, database)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", query, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestLoadReplay: the SQL of threads as it was recorded makes threads again, from start to
// end, as often as pgbench says it. With RYE_SOAK_MINUTES it measures a server: see the guide
// scaling, whose numbers come from here.
func TestLoadReplay(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if longtest.Soak() {
		measureLoad(t)
		return
	}
	l := newLoad(t, nil, false)
	before := l.ask(t, "SELECT count(*) FROM threads")
	l.replay(t, "-c", "2", "-t", "3")
	const want = "18 more, 18 completed, 18 paid, 18 transcripts"
	got := l.ask(t, fmt.Sprintf(`SELECT count(*) - %s || ' more, ' || count(*) FILTER (WHERE status = 'completed') - %s || ' completed, ' ||
		(SELECT count(*) FROM budgets WHERE actual_spend > 0) - %s || ' paid, ' ||
		(SELECT count(DISTINCT thread_id) FROM record_chunks WHERE name LIKE 'transcript%%') - %s || ' transcripts' FROM threads`, before, before, before, before))
	if got != want {
		t.Errorf("a replay makes %s; want %s", got, want)
	}
}
