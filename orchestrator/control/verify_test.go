package control

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/verify"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// newSignedScene is a scene whose user has an item key, which signs receipts.
func newSignedScene(t testing.TB) *scene {
	t.Helper()
	s := newScene(t)
	_, err := sign.Generate(filepath.Join(filepath.Dir(s.project), "user"), false, rand.Reader)
	s.noError(err)
	return s
}

func (s *scene) verify(id thread.ID) verify.Verdict {
	s.Helper()
	v, err := s.c.Verify.Check(s.ctx, []thread.ID{id})
	s.noError(err)
	if len(v.Threads) != 1 || v.Success != v.Threads[0].Verified || v.Signer != s.c.Threads.Records.Seal().Fingerprint() {
		s.Fatalf("verification %+v", v)
	}
	return v.Threads[0]
}

// TestParentSigns: the thread.json that a start writes is signed, and bounds what is below it.
func TestParentSigns(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	child, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: root})
	s.noError(err)
	meta, err := s.folder(child.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
	if err != nil || meta.ParentID != root || len(meta.Ceiling) == 0 {
		t.Errorf("thread.json of a child: %+v, %v", meta, err)
	}
}

// TestVerifyStates: an honest thread verifies whatever has become of it.
func TestVerifyStates(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	done, running, dead, decided := s.start("idle", ""), s.start("idle", ""), s.start("idle", ""), s.start("idle", "")
	s.order(done, "complete")
	s.order(decided, "decide")
	s.order(dead, "give-up")
	s.order(decided, "give-up")
	s.wait(s.c, WaitAll, done, dead, decided)
	for id, state := range map[thread.ID]thread.State{
		done: thread.Completed, running: thread.Running, dead: thread.Error, decided: thread.Completed,
	} {
		if v := s.verify(id); !v.Verified || v.Status != state {
			t.Errorf("%s: %+v", id, v)
		}
	}
	// A crash between registry and thread.json is mended, and is no damage.
	s.rewind(done)
	if v := s.verify(done); !v.Verified {
		t.Errorf("thread.json was behind: %+v", v)
	}
	checked := 0
	all, err := s.c.Verify.CheckAll(s.ctx, func(n int) { checked = n })
	if err != nil || !all.Success || len(all.Threads) != 4 || checked != 4 {
		t.Errorf("all: %+v, %v", all, err)
	}
}

// rewind brings thread.json of an ended thread back to what it was before.
func (s *scene) rewind(id thread.ID) {
	s.Helper()
	meta, err := s.folder(id).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	meta.Status, meta.Outcome, meta.Transcript = thread.Running, nil, nil
	s.noError(s.folder(id).WriteMeta(meta, s.c.Threads.Records.Seal()))
}

// seenHeld tells when somebody asks whether a life is held.
type seenHeld struct {
	life.Life
	asked func()
}

func (l seenHeld) Held(k life.Key) (bool, error) {
	l.asked()
	return l.Life.Held(k)
}

// TestVerifyEnding: a thread that has signed its end, and whose row does not say so for
// another moment, is waited for. It is not taken for damaged, and can be forked.
func TestVerifyEnding(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	id := s.start("idle", "")
	s.order(id, "say 1", "pause-at "+string(finish.CrashKnowledge), "complete")
	waits := make(chan struct{})
	s.c.Threads.Life = seenHeld{s.c.Threads.Life, sync.OnceFunc(func() { close(waits) })}
	verdicts := make(chan verify.Verdict, 1)
	go func() { verdicts <- s.verify(id) }()
	select {
	case v := <-verdicts:
		t.Fatalf("it was not waited for: %+v", v)
	case <-waits:
	}
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGCONT))
	if v := <-verdicts; !v.Verified || v.Status != thread.Completed {
		t.Errorf("%+v", v)
	}
	forked, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: id})
	if err != nil || !forked.Success {
		t.Errorf("fork: %+v, %v", forked, err)
	}
}

// TestRollbackIsNotSigned puts back an older state of a thread, every file of it
// genuine. Nothing that looks at the thread may make it whole again by signing it.
func TestRollbackIsNotSigned(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	id := s.start("idle", "")
	s.order(id, "complete")
	s.wait(s.c, WaitAll, id)
	s.verify(id) // waits for its last files
	s.rewind(id)
	s.noError(os.WriteFile(s.folder(id).Transcript(), nil, 0o600))
	for range 2 {
		_, err := s.c.View.Status(s.ctx, id)
		s.noError(err)
		_, _ = s.c.Threads.Sweep(s.ctx)
		v := s.verify(id)
		if v.Verified || !slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Damage == audit.RolledBack }) ||
			!slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Damage == transcript.Truncated }) {
			t.Errorf("verdict %+v", v)
		}
	}
	if _, err := s.c.Verify.Receipt(s.ctx, id); code(err) != tool.CodeInvalidItem {
		t.Errorf("receipt: %v", err)
	}
}

func TestThreadReceipt(t *testing.T) {
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	s.order(child, "spend 4000", "complete")
	s.wait(s.c, WaitAll, child)
	if _, err := s.c.Verify.Receipt(s.ctx, root); code(err) != tool.CodeUnsupported {
		t.Errorf("of a running thread: %v", err)
	}
	s.order(root, "spend 1000", "complete")
	s.wait(s.c, WaitAll, root)
	for _, id := range []thread.ID{root, child} {
		// A thread that asked a model has put on record what it could do.
		could, err := s.c.Threads.Records.Seal().Attach([]byte("# Capabilities of "+string(id)+"\n"), ".md", records.CapabilitiesName(id), testTime)
		s.noError(err)
		s.noError(s.folder(id).WriteCapabilities(could))
	}
	sealed, err := s.c.Verify.Receipt(s.ctx, root)
	s.noError(err)
	r, key, err := audit.OpenReceipt(sealed)
	s.noError(err)
	own, err := s.c.Verify.Key()
	s.noError(err)
	if !key.Equal(own.Public()) || r.ThreadID != root || r.Status != thread.Completed || r.Cost.Spend != 1000 || r.TreeSpend != 5000 ||
		len(r.Below) != 1 || r.Below[0].ThreadID != child || r.Below[0].ParentID != root || r.Below[0].Cost.Spend != 4000 {
		t.Errorf("receipt %+v", r)
	}
	if _, err := r.CheckTranscript(records.File(s.folder(root).Transcript()), key); err != nil {
		t.Error(err)
	}
	s.c.Verify.Key = func() (*sign.Key, error) { return nil, sign.ErrNoKey }
	if _, err := s.c.Verify.Receipt(s.ctx, root); code(err) != tool.CodeNoKey {
		t.Errorf("without a key: %v", err)
	}
}

// editLedger changes the ledger as anybody can who may write to its file.
func (s *scene) editLedger(query string, args ...any) {
	s.Helper()
	s.sqlOf("budget_ledger.db", query, args...)
	s.c = s.controller() // one that remembers nothing of before
}

// TestLedgerIsNotSigned: a receipt signs what the threads say that they have cost,
// each of which must verify; the ledger is believed of running ones only.
func TestLedgerIsNotSigned(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	child, runs := s.start("work", root), s.start("work", root)
	s.order(child, "complete")
	s.wait(s.c, WaitAll, child)
	s.order(runs, "ledger 3000")
	s.order(root, "complete")
	s.wait(s.c, WaitAll, root)
	receipt := func() (*audit.Receipt, error) {
		sealed, err := s.c.Verify.Receipt(s.ctx, root)
		if err != nil {
			return nil, err
		}
		r, _, err := audit.OpenReceipt(sealed)
		return r, err
	}
	r, err := receipt()
	s.noError(err)
	if r.TreeSpend != 3000 || len(r.Below) != 2 || r.Below[1].Status != thread.Running || r.Below[1].Cost.Spend != 3000 {
		t.Errorf("while one runs: %+v", r)
	}

	s.editLedger("UPDATE budgets SET own_spend = 7, actual_spend = 7 WHERE thread_id = ?", child)
	if v := s.verify(child); v.Verified || len(v.Findings) != 1 || v.Findings[0].Damage != audit.LedgerDiffers {
		t.Errorf("verdict %+v", v)
	}
	if v := s.verify(root); !v.Verified {
		t.Errorf("the thread above: %+v", v)
	}
	_, err = receipt()
	if f := threads.Fault(err); f.Code != tool.CodeInvalidItem || f.Hint != "rye-mcp threads verify "+string(child) {
		t.Errorf("receipt above one whose ledger was edited: %v", err)
	}
	s.editLedger("UPDATE budgets SET own_spend = 0, actual_spend = 0 WHERE thread_id = ?", child)
	if _, err = receipt(); err != nil {
		t.Errorf("as it was: %v", err)
	}
	s.editLedger(`INSERT INTO budgets (thread_id, parent_id, max_spend, own_spend, actual_spend, status, created_at, updated_at)
		VALUES ('ghost-1', ?, 9, 9, 9, 'settled', 1, 1)`, root)
	if _, err = receipt(); code(err) != tool.CodeInvalidItem || !strings.Contains(err.Error(), "those that are known") {
		t.Errorf("a thread that the registry lost: %v", err)
	}
}

// TestBudgetTold: get_status and get_budget say of the money what the ledger has.
func TestBudgetTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("work", "")
	child := s.start("work", root) // it is given 0.01
	s.order(root, "spend 200000")
	s.order(child, "spend 4000")
	status, err := s.c.View.Status(s.ctx, root)
	s.noError(err)
	want := view.Budget{
		Max: 1_000_000, Actual: 200_000, Reserved: 10_000, Remaining: 790_000, TreeSpend: 204_000, Threads: 2, Active: 2, CanSpawn: true,
	}
	if status.Budget == nil || *status.Budget != want {
		t.Errorf("budget %+v, want %+v", status.Budget, want)
	}
	ask := func(id thread.ID, amount thread.Micros) view.BudgetAnswer {
		b, err := s.c.View.GetBudget(s.ctx, view.BudgetInput{ThreadID: id, Amount: &amount})
		s.noError(err)
		return b
	}
	if b := ask(root, 790_000); !b.CanSpawn {
		t.Errorf("all that is left: %+v", b)
	}
	if b := ask(root, 790_001); b.CanSpawn || !strings.Contains(b.WhyNot, "$0.7900 left") {
		t.Errorf("more than is left: %+v", b)
	}
	s.order(child, "complete")
	s.wait(s.c, WaitAll, child)
	if b := ask(child, 0); b.CanSpawn || b.Remaining != 0 || b.WhyNot != "it is completed" {
		t.Errorf("ended: %+v", b)
	}
	if b := ask(root, 0); b.Actual != 204_000 || b.Reserved != 0 || b.TreeSpend != 204_000 || b.Active != 1 {
		t.Errorf("after its child: %+v", b)
	}
	sums, err := s.c.View.Aggregate(s.ctx, []thread.ID{root, child})
	s.noError(err)
	if r := sums.Results; r[root].TreeSpend == nil || *r[root].TreeSpend != 204_000 || r[child].TreeSpend != nil {
		t.Errorf("results: %+v", r)
	}
	answer, err := OfOperations(s.c).Operate(s.ctx, action.Caller{}, "get_budget", tool.Object(`{"thread_id":"`+string(root)+`","amount":0.000001}`))
	s.noError(err)
	if text, err := json.Marshal(answer); err != nil || !bytes.Contains(text, []byte(`"remaining":0.796`)) {
		t.Errorf("operation: %s, %v", text, err)
	}
}
