package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	neturl "net/url"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// pair is a project whose threads are on a server that another one follows. Every machine
// knows both, and takes the one that writes.
type pair struct {
	*fleetPlace

	primary, standby *pgtest.Cluster
	deeds            string // folder with what each process has claimed and written
}

func newPair(t *testing.T, archive string) *pair {
	t.Helper()
	p := &pair{primary: pgtest.Start(t, pgtest.Options{})}
	url := p.primary.Database(t)
	p.standby = p.primary.Standby(t)
	p.fleetPlace = newFleetPlaceOn(t, url+neturl.QueryEscape(","+p.standby.Socket())+"&target_session_attrs=read-write", archive)
	p.deeds = filepath.Join(filepath.Dir(p.dir), "deeds")
	p.noError(os.Mkdir(p.deeds, 0o700))
	p.env = append(p.env, historyVariable+"="+p.deeds, leaseVariable+"=1m") // longer than a fail-over takes
	return p
}

// stale ends that the standby follows, with all that is committed by now.
func (p *pair) stale() {
	p.Helper()
	p.primary.CaughtUp(p, p.standby)
	p.standby.Detach(p)
}

// failOver kills the primary and promotes the standby.
func (p *pair) failOver() {
	p.Helper()
	p.primary.Kill(p)
	p.standby.Promote(p)
	p.connect()
}

// tables is the schema of the project.
func (p *pair) tables() (schema string) {
	p.Helper()
	p.row(`SELECT schema_name FROM rye.projects`, &schema)
	return schema
}

// standing is the row and the budget of a thread, and who writes its transcript.
func (p *pair) standing(id thread.ID) (text string) {
	p.Helper()
	p.row(strings.NewReplacer("S.", p.tables()+".", "ID", "'"+string(id)+"'").Replace(`SELECT concat_ws(' ', t::text, b::text,
		(SELECT string_agg(f::text, ' ' ORDER BY name) FROM S.record_files f WHERE f.thread_id = ID))
		FROM S.threads t JOIN S.budgets b USING (thread_id) WHERE thread_id = ID`), &text)
	return text
}

// runner is the process of a thread, and its run.
func (p *pair) runner(id thread.ID) (pid int, run string) {
	p.Helper()
	p.until(func() (bool, string) {
		p.row(`SELECT pid FROM `+p.tables()+`.threads WHERE thread_id = '`+string(id)+`'`, &pid)
		return pid != 0, "the thread has no process"
	})
	p.row(`SELECT run FROM `+p.tables()+`.threads WHERE thread_id = '`+string(id)+`'`, &run)
	return pid, run
}

// logged is what the processes of threads have said on a machine.
func (p *pair) logged(machine string) string {
	p.Helper()
	var text strings.Builder
	p.noError(filepath.WalkDir(filepath.Join(filepath.Dir(p.dir), machine), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".log") {
			var content []byte
			content, err = os.ReadFile(path)
			text.Write(content)
		}
		return err
	}))
	return text.String()
}

// TestStandbyPromotedUnderRunner: a thread runs on one machine when the server dies, and the
// standby that takes its place has the thread still queued. Another machine runs it, under
// another run. The first writes nowhere what it has got from its model meanwhile, it ends, and
// its log says what it has spent.
func TestStandbyPromotedUnderRunner(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPair(t, unconfigured())
	p.workOn("poor", append(p.machine("poor"), noKey)) // for whose sake threads are queued
	p.host = p.serve()
	started, err := start(p.host, "slow")
	p.noError(err)
	id := started.ThreadID
	p.stale()
	first := p.work("one")
	p.wantCalls(1)
	lost, before := p.runner(id)
	p.suspend(first.cmd.Process.Pid) // else it joins anew at once, and kills what it ran
	p.failOver()
	promoted := time.Now().UnixNano()
	if status := p.status(id); !status.Queued {
		t.Fatalf("the standby has the thread as %+v", status)
	}

	p.work("two")
	p.wantCalls(2)
	goes, after := p.runner(id)
	if after == before {
		t.Fatalf("two have the thread by run %s", after)
	}
	ended := p.wantLostInVain(id, lost, goes)
	p.wantFenced(id, thread.Run(before), promoted)
	if said := p.logged("one"); !strings.Contains(said, `"lost_spend":"`+ended.Cost.Spend.String()+`"`) {
		t.Errorf("nobody is told that the same was spent in vain:\n%s", said)
	}

	first.signal(syscall.SIGCONT)
	first.wantJoined()
	first.signal(syscall.SIGTERM)
	first.wantLeft()
}

// wantLostInVain answers the process of a run that is lost before that of the run that goes on,
// and sees the first end without having written anything, and the thread complete with the money
// of one.
func (p *pair) wantLostInVain(id thread.ID, lost, goes int) view.Result {
	p.Helper()
	p.suspend(goes)
	stood := p.standing(id)
	p.model.release()
	p.wantGone(lost)
	if now := p.standing(id); now != stood {
		p.Errorf("when a run that is lost has ended, the thread is\n%s\nit was\n%s", now, stood)
	}
	p.noError(syscall.Kill(goes, syscall.SIGCONT))
	ended := p.wantEndAs(id, thread.Completed)
	p.kept(id)
	p.wantMoney(id, ended.Cost.Spend)
	return ended
}

// wantMoney checks what registry and ledger say that a thread has spent.
func (p *pair) wantMoney(id thread.ID, want thread.Micros) {
	p.Helper()
	var row, own, actual, reserved, pledged thread.Micros
	p.noError(p.rows.QueryRow(p.Context(), `SELECT t.spend, b.own_spend, b.actual_spend, b.reserved_spend, b.pledged_spend
		FROM `+p.tables()+`.threads t JOIN `+p.tables()+`.budgets b USING (thread_id) WHERE thread_id = $1`, string(id)).Scan(&row, &own, &actual, &reserved, &pledged))
	if want == 0 || row != want || own != want || actual != want || reserved != 0 || pledged != 0 {
		p.Errorf("its run has spent %s; row %s, budget own %s, actual %s, reserved %s, pledged %s", want, row, own, actual, reserved, pledged)
	}
}

// wantFenced checks that a run has tried to write since some time, and that nothing was done.
func (p *pair) wantFenced(id thread.ID, run thread.Run, since int64) {
	p.Helper()
	tried := 0
	for _, d := range history(p, p.deeds)[id] {
		if d.By != run || d.Call < since {
			continue
		}
		if tried++; d.Result == done {
			p.Errorf("a run that is lost has written: %+v", d)
		}
	}
	if tried == 0 {
		p.Error("the run that is lost has not tried to write")
	}
}

// threeSteps is a thread of three turns. The model takes its time for the second answer, and holds
// the third back.
const threeSteps = `
-- held.txt --
Be held.
-- .ai/directives/steps.md --
` + "```xml" + `
<directive name="steps" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits spend="0.50" />
    <permissions><execute><tool>rye.file-system.read</tool><tool>rye.file-system.ls</tool></execute></permissions>
  </metadata>
</directive>
` + "```" + `

Take steps.
-- model.yaml --
turns:
  - match: {first: Take steps, turn: 1}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 1000, output_tokens: 100}
  - match: {first: Take steps, turn: 2}
    delay: 1500ms
    tool_calls: [{name: rye_file_system_read, input: {path: held.txt}}]
    usage: {input_tokens: 2000, output_tokens: 200}
  - {text: Taken., usage: {input_tokens: 3000, output_tokens: 300}}
`

// shipped is how much of the transcript of a thread the server has.
func (p *pair) shipped(id thread.ID) (size int64) {
	p.Helper()
	p.row(`SELECT coalesce(max(size), 0) FROM `+p.tables()+`.record_files WHERE thread_id = '`+string(id)+`' AND name = 'transcript.jsonl'`, &size)
	return size
}

// grows waits until the server has more of the transcript of a thread, and returns how much.
func (p *pair) grows(id thread.ID, than int64) (size int64) {
	p.Helper()
	p.until(func() (bool, string) {
		size = p.shipped(id)
		return size > than, "no checkpoint comes"
	})
	return size
}

// TestStandbyPromotedUnderTurn: the standby that is promoted has a thread as it was a turn
// ago. The run goes on, and the server gets again what it lacks: one transcript without a
// hole, and the money of all turns.
func TestStandbyPromotedUnderTurn(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPair(t, threeSteps)
	first := p.work("one")
	p.host = p.serve()
	started, err := start(p.host, "steps")
	p.noError(err)
	id := started.ThreadID
	p.wantCalls(2)
	_, run := p.runner(id)
	knows := p.grows(id, 0)
	p.stale()
	p.wantCalls(3)
	had := p.grows(id, knows)
	p.failOver()
	if has := p.shipped(id); has == 0 || has >= had {
		t.Fatalf("the standby has %d bytes of %d", has, had)
	}
	p.model.release()
	ended := p.wantEndAs(id, thread.Completed)
	var now string
	p.row(`SELECT run FROM `+p.tables()+`.threads WHERE thread_id = '`+string(id)+`'`, &now)
	if now != run || ended.Cost.Turns != 3 {
		t.Errorf("run %s has ended it after %d turns; it was begun by %s", now, ended.Cost.Turns, run)
	}
	p.kept(id)
	p.wantMoney(id, ended.Cost.Spend)
	first.signal(syscall.SIGTERM)
	first.wantLeft()
}

// TestStandbyPromotedUnderOneWorker: the standby that takes the place of the server has a thread
// still queued that the only worker runs. That worker takes it again, under another run; the run
// before writes nothing more, and the money is that of one.
func TestStandbyPromotedUnderOneWorker(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPair(t, unconfigured())
	one := p.work("one")
	p.host = p.serve()
	p.suspend(one.cmd.Process.Pid) // it takes nothing before the standby is stale
	started, err := start(p.host, "slow")
	p.noError(err)
	id := started.ThreadID
	p.stale()
	one.signal(syscall.SIGCONT)
	p.wantCalls(1)
	lost, before := p.runner(id)
	p.failOver()
	p.wantCalls(2)
	goes, after := p.runner(id)
	if after == before {
		t.Fatalf("two have the thread by run %s", after)
	}
	p.wantLostInVain(id, lost, goes)
	one.signal(syscall.SIGTERM)
	one.wantLeft()
}
