package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// patientDirective is a directive of machines whose network is cut: a thread that dies is tried again.
func patientDirective(name, limits, permissions, task string) string {
	if permissions != "" {
		permissions = "    <permissions>" + permissions + "</permissions>\n"
	}
	return "-- .ai/directives/" + name + ".md --\n```xml\n" + `<directive name="` + name + `" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits ` + limits + ` />
    <retry attempts="20" backoff="fixed" delay="0.1" on="provider crash" />
` + permissions + `  </metadata>
</directive>
` + "```\n\n" + task + "\n"
}

// partitioned is the project of such machines: short and long threads, some with children,
// and one whose model answers when it is released.
var partitioned = "\n" +
	patientDirective("patient", `spend="0.20"`, "", "Be patient. Be held.") +
	patientDirective("work", `spend="0.20"`, "<execute><tool>rye.file-system.ls</tool></execute>", "Work for long.") +
	patientDirective("quick", `spend="0.05"`, "", "Be quick.") +
	patientDirective("lead", `spend="1.00" spawns="40"`,
		"<execute><directive>quick</directive><directive>work</directive><tool>rye/agent/threads/orchestrator</tool></execute>", "Lead others.") +
	`-- .ai/config/agent/agent.yaml --
threads: {max_running: 100}
-- model.yaml --
turns:
  - match: {first: Be quick}
    text: Quick.
    usage: {input_tokens: 1000, output_tokens: 100}
  - match: {first: Be patient}
    text: Patient.
    usage: {input_tokens: 1000, output_tokens: 100}
  - match: {first: Work for long, turn: 1}
    delay: 1s
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 2000, output_tokens: 200}
  - match: {first: Work for long, turn: 2}
    delay: 1s
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 3000, output_tokens: 300}
  - match: {first: Work for long}
    text: Worked.
    usage: {input_tokens: 4000, output_tokens: 400}
  - match: {first: Lead others, turn: 1}
    tool_calls:
      - {name: rye_execute, input: {item_type: directive, item_id: quick, async: true}}
      - {name: rye_execute, input: {item_type: directive, item_id: work, async: true}}
    usage: {input_tokens: 1000, output_tokens: 100}
  - match: {first: Lead others, turn: 2}
    tool_calls:
      - name: rye_execute
        input_json: |
          {"item_type": "tool", "item_id": "rye/agent/threads/orchestrator",
           "parameters": {"operation": "wait_threads", "thread_ids": {{ results "thread_id" | toJSON }}}}
    usage: {input_tokens: 2000, output_tokens: 100}
  - match: {first: Lead others}
    text: Led.
    usage: {input_tokens: 3000, output_tokens: 100}
`

// slotsOfOne is how many threads a machine runs at the same time.
const slotsOfOne = 4

// partition are three machines with workers, and a fourth that threads are started from.
type partition struct {
	*lan

	machines []*machine
	starter  *host
	deeds    string // folder with what each process has claimed and written
	started  []thread.ID
}

// newPartition has a thread that waits for its model on the first machine, and others that
// run, or are queued, on any.
func newPartition(t *testing.T, env ...string) *partition {
	t.Helper()
	p := &partition{lan: newLAN(t, partitioned)}
	p.deeds = filepath.Join(filepath.Dir(p.dir), "deeds")
	p.noError(os.Mkdir(p.deeds, 0o700))
	p.env = slices.Concat(env, []string{historyVariable + "=" + p.deeds})
	for n := 1; n <= 3; n++ {
		p.machines = append(p.machines, p.newMachine(n))
	}
	p.machines[0].work(slotsOfOne)
	p.awaitWorkers(1)
	p.starter = p.newMachine(4).serve()
	var schema string
	p.noError(p.db.QueryRow(t.Context(), "SELECT schema_name FROM rye.projects").Scan(&schema))
	p.look(schema)
	p.watchRecords()
	p.start("patient", 1)
	p.await("a thread waits for its model", "SELECT count(*) = 1 FROM budgets WHERE pledged_spend > 0")
	for _, m := range p.machines[1:] {
		m.work(slotsOfOne)
	}
	p.awaitWorkers(3)
	return p
}

// awaitWorkers waits until so many workers have joined.
func (p *partition) awaitWorkers(n int) {
	p.Helper()
	p.await("workers have joined", "SELECT to_regclass('rye.workers') IS NOT NULL")
	p.await("workers have joined", fmt.Sprintf("SELECT count(*) = %d FROM rye.workers WHERE slots > 0 AND lease_until > clock_timestamp()", n))
}

// sql runs a statement.
func (p *partition) sql(statement string, args ...any) {
	p.Helper()
	if _, err := p.db.Exec(p.Context(), statement, args...); err != nil {
		p.Fatalf("%s: %v", statement, err)
	}
}

// is asks whether something is so. Nothing is while the server is away.
func (p *partition) is(query string, args ...any) (so bool) {
	p.Helper()
	err := p.db.QueryRow(p.Context(), query, args...).Scan(&so)
	if pg := new(pgconn.PgError); errors.As(err, &pg) && !strings.HasPrefix(pg.Code, "57P") { // it is shut down, or starts
		p.Fatalf("%s: %v", query, err)
	}
	return so && err == nil
}

// patience is how long a partition is waited for: leases have to run out, and failed
// threads to be tried again, maybe several times.
const patience = 2 * time.Minute

// await waits until the answer to a query is true.
func (p *partition) await(what, query string, args ...any) {
	p.Helper()
	p.eventually(what, func() bool { return p.is(query, args...) })
}

// eventually waits until something is so.
func (p *partition) eventually(what string, so func() bool) {
	p.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.After(patience)
	for !so() {
		select {
		case <-tick.C:
		case <-over:
			p.Fatalf("never: %s\n%s\n%s", what, p.threads(), p.logs())
		}
	}
}

// start starts threads of a directive from the fourth machine.
func (p *partition) start(directive string, n int) {
	p.Helper()
	for range n {
		started, err := start(p.starter, directive)
		if err != nil {
			p.Fatalf("start %s: %v\n%s", directive, err, p.starter.readLog())
		}
		p.started = append(p.started, started.ThreadID)
	}
}

// rows are the rows of a query, as text.
func (p *partition) rows(query string, args ...any) string {
	p.Helper()
	rows, err := p.db.Query(p.Context(), query, args...)
	p.noError(err)
	defer rows.Close()
	var text strings.Builder
	for rows.Next() {
		values, err := rows.Values()
		p.noError(err)
		_, _ = fmt.Fprintln(&text, values...)
	}
	p.noError(rows.Err())
	return text.String()
}

// threads shows all threads.
func (p *partition) threads() string {
	p.Helper()
	return p.rows("SELECT thread_id, parent_id, status, worker, run, retry_at, continuation_thread_id, spend, left(result, 200) FROM threads ORDER BY created_at")
}

// logs are what workers have said.
func (p *partition) logs() string {
	var text strings.Builder
	for _, m := range p.machines {
		log, _ := os.ReadFile(m.log())
		_, _ = fmt.Fprintf(&text, "-- %s\n%s", m.name, log)
	}
	return text.String()
}

// watchRecords has the database write down who writes which record under which run.
func (p *partition) watchRecords() {
	p.Helper()
	for _, statement := range []string{
		"CREATE TABLE seen_writers (thread_id text, name text, writer text, run text, UNIQUE (thread_id, name, writer, run))",
		`CREATE FUNCTION seen_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO seen_writers SELECT NEW.thread_id, NEW.name, NEW.writer, run FROM threads WHERE thread_id = NEW.thread_id AND NEW.writer <> ''
			ON CONFLICT DO NOTHING;
			RETURN NULL; END $$`,
		"CREATE TRIGGER seen_writer AFTER INSERT OR UPDATE ON record_files FOR EACH ROW EXECUTE FUNCTION seen_writer()",
	} {
		p.sql(statement)
	}
}

// keepWorking starts workers again that have ended, as the service manager of a machine
// does, until the function it returns is called.
func (p *partition) keepWorking() (end func()) {
	over := make(chan struct{})
	var keepers sync.WaitGroup
	for _, m := range p.machines {
		keepers.Go(func() {
			for {
				select {
				case <-m.ended:
					m.work(slotsOfOne)
				case <-over:
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(over)
		keepers.Wait()
	})
}

// killBesideStopped kills the worker of a machine while what it runs is stopped. When that
// goes on somebody else has replaced it, and is about to settle it.
func (p *partition) killBesideStopped(m *machine) {
	p.Helper()
	pause := pausedFor(p.deeds, "patient")
	p.noError(os.WriteFile(pause, nil, 0o600))
	defer func() { _ = os.Remove(pause) }()
	stopped := m.signal(syscall.SIGSTOP, ofThread)
	m.signal(syscall.SIGKILL, ofWorker)
	p.model.release()
	p.eventually("the run of a worker that was killed is replaced", func() bool {
		_, err := os.Stat(pause + pausing)
		return err == nil
	})
	m.resume()
	p.eventually("runs that were replaced end", func() bool {
		return !slices.ContainsFunc(m.processes(ofThread), func(pid int) bool { return slices.Contains(stopped, pid) })
	})
}

// stopPastLease stops the worker of a machine and what it runs until its lease is over.
func (p *partition) stopPastLease(m *machine) {
	p.Helper()
	resume := m.stop()
	defer resume()
	p.await("the lease of a stopped worker runs out", "SELECT lease_until < clock_timestamp() FROM rye.workers WHERE name = $1", m.name)
}

// cutFor cuts links of a machine for a time.
func (p *partition) cutFor(m *machine, length time.Duration, which ...link) {
	p.Helper()
	mend := m.cut(which...)
	<-time.After(length) // which is the fault
	mend()
}

// TestPartition: three workers on machines with networks of their own. At the same time one
// is killed while the thread that it runs is stopped, one is stopped past its lease, and one
// has no network for 4 seconds. In the end all that was started has completed, no thread was
// had by two, and the money is exact.
func TestPartition(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if !ownNetwork(t) {
		return
	}
	p := newPartition(t)
	p.start("work", 5)
	p.start("lead", 2)
	p.start("quick", 3)
	p.strike()
	p.wantAllDone()
	p.wantOneHolder()
	p.wantExactMoney()
	end := time.Now().Add(time.Duration(soakMinutes()) * time.Minute)
	for seed := uint64(0); soakMinutes() > 0 && time.Now().Before(end) && !t.Failed(); seed++ {
		p.start("work", 8)
		p.start("lead", 4)
		p.start("quick", 12)
		p.torment(seed)
		p.wantAllDone()
		p.wantOneHolder()
		p.wantExactMoney()
	}
}

// torment does things by chance to all machines and to the server at the same time.
func (p *partition) torment(seed uint64) {
	p.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	faults := []struct {
		name string
		do   func(*machine)
	}{
		{"nothing", func(*machine) {}},
		{"no database for 4 s", func(m *machine) { p.cutFor(m, 4*time.Second, toData) }},
		{"no network for 4 s", func(m *machine) { p.cutFor(m, 4*time.Second, links...) }},
		{"no database for 30 s", func(m *machine) { p.cutFor(m, 30*time.Second, toData) }},
		{"no network for 30 s", func(m *machine) { p.cutFor(m, 30*time.Second, links...) }},
		{"worker killed", func(m *machine) { m.signal(syscall.SIGKILL, ofWorker) }},
		{"all killed", func(m *machine) { m.signal(syscall.SIGKILL, ofWorker); m.signal(syscall.SIGKILL, ofThread) }},
		{"stopped past its lease", p.stopPastLease},
	}
	var running sync.WaitGroup
	for _, m := range p.machines {
		fault := faults[r.IntN(len(faults))]
		p.Logf("seed %d: %s: %s", seed, m.name, fault.name)
		running.Go(func() { fault.do(m) })
	}
	switch how := r.IntN(4); how {
	case 0, 1:
		p.Logf("seed %d: the server is restarted, killed: %v", seed, how == 1)
		if how == 1 {
			p.cluster.Kill(p)
			p.cluster.Up(p)
		} else {
			p.cluster.Restart(p)
		}
	}
	running.Wait()
}

// TestPartitionUnfenced: with the fence taken away the same ends with threads that two had.
func TestPartitionUnfenced(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if !ownNetwork(t) {
		return
	}
	p := newPartition(t, unfencedVariable+"=1")
	p.strike()
	of := history(t, p.deeds)
	if len(violations(of)) == 0 {
		t.Errorf("without the fence nothing is noticed: %+v", of[p.started[0]])
	}
}

// strike does to each machine what TestPartition says.
func (p *partition) strike() {
	p.Helper()
	var faults sync.WaitGroup
	faults.Go(func() { p.cutFor(p.machines[1], 4*time.Second, links...) })
	faults.Go(func() { p.stopPastLease(p.machines[2]) })
	p.killBesideStopped(p.machines[0])
	faults.Wait()
}

// endOfChain asks what a thread has come to, maybe at another attempt.
const endOfChain = `WITH RECURSIVE chain AS (SELECT * FROM threads WHERE thread_id = $1
	UNION ALL SELECT t.* FROM threads t JOIN chain c ON t.thread_id = c.continuation_thread_id)
	SELECT status, coalesce(result, '') FROM chain WHERE continuation_thread_id IS NULL`

// wantAllDone waits until all threads have ended, and checks that those that were started
// have completed, maybe at another attempt, and that nothing of what they left is damaged.
func (p *partition) wantAllDone() {
	p.Helper()
	end := p.keepWorking()
	defer end()
	p.await("all threads end", "SELECT NOT EXISTS (SELECT FROM threads WHERE status IN ('created', 'running') OR retry_at IS NOT NULL)")
	for _, id := range p.started {
		var status, result string
		p.noError(p.db.QueryRow(p.Context(), endOfChain, string(id)).Scan(&status, &result))
		if status != string(thread.Completed) {
			p.Errorf("%s has come to %s\n%s", id, status, p.threads())
		}
	}
	if out, err := p.starter.p.cli(p.starter.p.dir, nil, "threads", "verify", "--all"); err != nil {
		p.Errorf("verify: %v\n%s", err, out)
	}
	if p.Failed() {
		p.Logf("%s", p.logs())
	}
}

// wantOneHolder checks that claims and writes are those of one holder at a time.
func (p *partition) wantOneHolder() {
	p.Helper()
	of := history(p, p.deeds)
	for _, id := range violations(of) {
		p.Errorf("two had %s: %+v", id, of[id])
	}
	late, all := 0, 0
	for _, deeds := range of {
		for _, d := range deeds {
			all++
			if d.Result == fenced {
				late++
			}
		}
	}
	if late == 0 {
		p.Error("no run came late")
	}
	p.Logf("%d threads, %d claims and writes, %d by runs that were replaced", len(of), all, late)
	if two := p.rows("SELECT thread_id, name, writer, array_agg(run) FROM seen_writers GROUP BY 1, 2, 3 HAVING count(*) > 1"); two != "" {
		p.Errorf("records were written by who had been replaced:\n%s", two)
	}
}

// wrongMoney finds where registry and ledger do not say the same, in any tree.
var wrongMoney = map[string]string{
	"not settled": "SELECT * FROM budgets WHERE status = 'active' OR reserved_spend <> 0",
	"of registry and ledger": `SELECT t.thread_id, t.status, t.spend, b.own_spend FROM threads t LEFT JOIN budgets b USING (thread_id)
		WHERE t.is_set = 0 AND t.spend IS DISTINCT FROM coalesce(b.own_spend, 0)`,
	"of parents and children": `SELECT b.thread_id, b.actual_spend, b.own_spend FROM budgets b WHERE b.actual_spend <>
		b.own_spend + (SELECT coalesce(sum(c.actual_spend), 0) FROM budgets c WHERE c.parent_id = b.thread_id)`,
}

// wantExactMoney checks that registry and ledger say the same, in every tree.
func (p *partition) wantExactMoney() {
	p.Helper()
	for what, query := range wrongMoney {
		if wrong := p.rows(query); wrong != "" {
			p.Errorf("the money %s:\n%s", what, wrong)
		}
	}
}
