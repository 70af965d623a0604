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

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// pair is a project whose threads are on a server that another one follows. Every machine
// knows both, and takes the one that writes.
type pair struct {
	*fleetPlace

	primary, standby *pgtest.Cluster
	deeds            string // folder with what each process has claimed and written
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{primary: pgtest.Start(t, pgtest.Options{})}
	url := p.primary.Database(t)
	p.standby = p.primary.Standby(t)
	p.fleetPlace = newFleetPlaceOn(t, url+neturl.QueryEscape(","+p.standby.Socket())+"&target_session_attrs=read-write")
	p.deeds = filepath.Join(filepath.Dir(p.dir), "deeds")
	p.noError(os.Mkdir(p.deeds, 0o700))
	p.env = append(p.env, historyVariable+"="+p.deeds)
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
// another run. What the first has got from its model meanwhile it writes nowhere, it ends, and
// its log says what it has spent.
func TestStandbyPromotedUnderRunner(t *testing.T) {
	t.Parallel()
	p := newPair(t)
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
	p.suspend(goes) // the first is answered alone
	stood := p.standing(id)
	p.model.release()
	p.wantGone(lost)
	if now := p.standing(id); now != stood {
		t.Errorf("when a run that is lost has ended, the thread is\n%s\nit was\n%s", now, stood)
	}
	p.noError(syscall.Kill(goes, syscall.SIGCONT))
	ended := p.wantEndAs(id, thread.Completed)
	p.kept(id)
	p.wantMoney(id, ended.Cost.Spend)
	p.wantFenced(id, thread.Run(before), promoted)
	if said := p.logged("one"); !strings.Contains(said, `"lost_spend":"`+ended.Cost.Spend.String()+`"`) {
		t.Errorf("nobody is told that the same was spent in vain:\n%s", said)
	}

	first.signal(syscall.SIGCONT)
	first.wantJoined()
	first.signal(syscall.SIGTERM)
	first.wantLeft()
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
