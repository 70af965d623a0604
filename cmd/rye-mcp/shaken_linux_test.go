package main_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// shaken is a worker whose server has faults, which both are the test's alone.
type shaken struct {
	*fleetPlace

	cluster *pgtest.Cluster
	link    *pgtest.Link // between the worker and its server
	worker  *runs
	deeds   string // folder with what each process has claimed and written
}

func newShaken(t *testing.T) *shaken {
	t.Helper()
	s := &shaken{cluster: pgtest.Start(t, pgtest.Options{})}
	s.cluster.Exec(t, "CREATE ROLE team LOGIN", "CREATE DATABASE work OWNER team") // whom the faults concern
	s.fleetPlace = newFleetPlaceOn(t, s.cluster.URL("team", "work"), quickWork)
	s.deeds = filepath.Join(filepath.Dir(s.dir), "deeds")
	s.noError(os.Mkdir(s.deeds, 0o700))
	s.env = append(s.env, historyVariable+"="+s.deeds)
	link, through := pgtest.NewLink(t, s.url)
	s.link = link
	s.worker = s.workOn("one", append(s.machine("one"), storeurl.Variable+"="+through))
	s.host = s.serve()
	return s
}

// quickWork is a project of threads of two turns. One that dies of a fault is tried again.
const quickWork = `
-- .ai/directives/work.md --
` + "```xml" + `
<directive name="work" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits spend="0.20" />
    <retry attempts="20" backoff="fixed" delay="0.1" on="provider crash" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Work in turns.
-- model.yaml --
turns:
  - match: {first: Work in turns, turn: 1}
    delay: 300ms
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 1000, output_tokens: 100}
  - match: {first: Work in turns}
    text: Worked.
    delay: 300ms
    usage: {input_tokens: 2000, output_tokens: 200}
`

// sql runs statements as the owner of the cluster, whom no fault of the test concerns.
func (s *shaken) sql(statements ...string) {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.cluster.URL("rye", "work"))
	s.noError(err)
	defer conn.Close(context.Background()) //nolint:errcheck // of a test
	for _, statement := range statements {
		_, err = conn.Exec(s.Context(), statement)
		s.noError(err)
	}
}

// refuseConnections has the server let nobody in any more, with the code that it has when all
// connections are taken, until it has refused somebody.
func (s *shaken) refuseConnections() {
	s.Helper()
	wait := s.cluster.Refuses(s, "too many connections")
	s.sql("ALTER ROLE team CONNECTION LIMIT 0")
	wait()
	s.sql("ALTER ROLE team CONNECTION LIMIT -1")
}

// readOnly has the server write nothing until it has refused to.
func (s *shaken) readOnly() {
	s.Helper()
	wait := s.cluster.Refuses(s, "in a read-only transaction")
	s.cluster.ReadOnly(s, true)
	wait()
	s.cluster.ReadOnly(s, false)
}

// fill has the server say that its disk is full, in the last step of transactions, until it has
// said so.
func (s *shaken) fill() {
	s.Helper()
	wait := s.cluster.Refuses(s, "No space left on device")
	schema := s.schema()
	tables := []string{schema + ".threads", schema + ".budgets", schema + ".record_files", "rye.workers"}
	for _, table := range tables {
		s.sql("CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT OR UPDATE ON " + table + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION full_disk()")
	}
	wait()
	for _, table := range tables {
		s.sql("DROP TRIGGER full_disk ON " + table)
	}
}

func (s *shaken) schema() (schema string) {
	s.Helper()
	s.row(`SELECT schema_name FROM rye.projects`, &schema)
	return schema
}

// unknownEnd is said where a server that has started since an answer to COMMIT was lost does not
// let anybody ask it in the time of a call, as on a machine that has too much to do.
const unknownEnd = "whether the PostgreSQL server has committed is not known"

// wantWorked waits until threads have completed, maybe at another attempt. The answer to a COMMIT
// may be lost: then one may fail, and say so.
func (s *shaken) wantWorked(fault string, lost bool, ids []thread.ID) {
	s.Helper()
	s.until(func() (over bool, why string) {
		err := s.rows.QueryRow(s.Context(), `SELECT NOT EXISTS (SELECT FROM threads WHERE status IN ('created', 'running') OR retry_at IS NOT NULL)`).Scan(&over)
		return over && err == nil, "threads do not end: " + s.worker.said()
	})
	for _, id := range ids {
		var status, result string
		s.noError(s.rows.QueryRow(s.Context(), endOfChain, string(id)).Scan(&status, &result))
		told := lost && status == string(thread.Error) && strings.Contains(result, unknownEnd)
		if status != string(thread.Completed) && !told {
			s.Errorf("%s: %s has come to %s\n%s\n%s", fault, id, status, result, s.worker.said())
		}
	}
}

// TestServerFaultsUnderWorker: the server has no connection left, writes nothing, has a full
// disk, is slow, and is restarted and killed, each while a worker runs threads and others are
// queued. All of them complete, or say that an answer was lost; nobody has a thread that another has, what they leave verifies
// and the money is exact.
func TestServerFaultsUnderWorker(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newShaken(t)
	schema := s.schema()
	s.sql("ALTER ROLE team IN DATABASE work SET search_path = "+schema,
		`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	s.connect()
	for _, fault := range []struct {
		name   string
		happen func()
		lost   bool // are answers
	}{
		{"no connection left", s.refuseConnections, false},
		{"read-only", s.readOnly, false},
		{"disk full", s.fill, false},
		{"slow", func() { s.link.Slow(5 * time.Millisecond) }, false},
		{"restarted", func() { s.link.Slow(0); s.cluster.Restart(s); s.connect() }, true},
		{"killed", func() { s.cluster.Kill(s); s.cluster.Up(s); s.connect() }, true},
	} {
		calls, _ := s.model.counts()
		var ids []thread.ID
		for range 3 { // one more than the worker runs at once
			started, err := start(s.host, "work")
			s.noError(err)
			ids = append(ids, started.ThreadID)
		}
		s.wantCalls(calls + 1)
		fault.happen()
		s.wantWorked(fault.name, fault.lost, ids)
	}
	for _, id := range violations(history(s, s.deeds)) {
		t.Errorf("two had %s: %+v", id, history(s, s.deeds)[id])
	}
	for what, query := range wrongMoney {
		var wrong int
		if s.row("SELECT count(*) FROM ("+query+") wrong", &wrong); wrong > 0 {
			t.Errorf("the money %s: %d rows", what, wrong)
		}
	}
	s.ryes(nil, "threads", "verify", "--all")
	s.worker.signal(syscall.SIGTERM)
	s.worker.wantLeft()
}
