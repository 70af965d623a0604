package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// purchase is what the tool test/buy buys, in micro-dollars.
type purchase struct {
	Most int64 `json:"most"`
	Cost int64 `json:"cost"`
}

// buys are tools that buy: test/buy at once, test/keep and never settles.
func buys() []tool.Tool {
	buy := func(settles bool) func(context.Context, tool.Env, purchase) (any, error) {
		return func(ctx context.Context, env tool.Env, in purchase) (any, error) {
			settle, err := env.Purse.Hold(ctx, thread.Micros(in.Most))
			if err != nil || !settles {
				return "held", err
			}
			return "bought", settle(thread.Micros(in.Cost))
		}
	}
	return []tool.Tool{
		tool.New(tool.Definition{ID: "test/buy", Description: "buy"}, buy(true)),
		tool.New(tool.Definition{ID: "test/keep", Description: "keep"}, buy(false)),
	}
}

// call is a call of such a tool in a script.
func buyCall(name string, most, cost int) string {
	return fmt.Sprintf("{name: test_%s, input: {most: %d, cost: %d}}", name, most, cost)
}

// The model's calls in the scripts here cost this.
const modelCalls = 240

func buyScript(calls ...string) string {
	return "turns:\n  - {match: {turn: 1}, tool_calls: [" + strings.Join(calls, ", ") + "], usage: {input_tokens: 100, output_tokens: 10}}\n" +
		"  - {text: done, usage: {input_tokens: 100, output_tokens: 10}}\n"
}

// TestPurse: what tools buy is the thread's own spend, in ledger, row, thread.json and
// transcript alike; calls that buy at the same time add up.
func TestPurse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = buys()
	h.script(buyScript(buyCall("buy", 1000, 700), buyCall("buy", 2000, 50), buyCall("buy", 10, 10), buyCall("buy", 5, 0)))
	rec := h.run(job{})
	if rec.Status != thread.Completed || rec.Cost.Spend != modelCalls+760 {
		t.Errorf("%s, spent %d", rec.Status, rec.Cost.Spend)
	}
	var recorded thread.Micros
	for _, r := range h.results(rec.ThreadID) {
		if recorded += r.Spend; r.IsError {
			t.Errorf("%s", r.Text)
		}
	}
	if recorded != 760 {
		t.Errorf("the transcript has %d", recorded)
	}
}

// TestPurseEmpty: what may cost more than there is left is refused before it is bought,
// and the thread goes on.
func TestPurseEmpty(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = buys()
	h.script(buyScript(buyCall("buy", 999_000, 999_000), buyCall("buy", 1_000_000, 1)))
	rec := h.run(job{limits: func(l *thread.Limits) { l.Spend = 1_000_000 }, capabilities: []string{"rye.execute.tool.test.*"}})
	refused := 0
	for _, r := range h.results(rec.ThreadID) {
		if r.IsError && strings.Contains(r.Text, "budget_insufficient") && strings.Contains(r.Text, "left") {
			refused++
		}
	}
	if refused == 0 || rec.Cost.Spend > 1_000_000 {
		t.Errorf("%s, %d refused, spent %d", rec.Status, refused, rec.Cost.Spend)
	}
}

// TestPurseLeftBehind: what was never settled counts as the most that it can be, once.
func TestPurseLeftBehind(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = buys()
	h.script(buyScript(buyCall("keep", 1000, 0), buyCall("buy", 10, 3)))
	if rec := h.run(job{}); rec.Cost.Spend != modelCalls+1003 {
		t.Errorf("spent %d", rec.Cost.Spend)
	}
}

// TestPurseAfterTheEnd: the last hooks buy out of what the thread had left. The spend
// that it was signed with stays, and what they bought counts with it in the ledger.
func TestPurseAfterTheEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = buys()
	h.script(doneScript)
	h.toolItems("buy")
	h.hooks(inHooks("buys", "after_complete", "", "primary: execute, item_type: tool, item_id: test/buy, params: {most: 1000, cost: 400}"),
		inHooks("cannot", "after_complete", "", "primary: execute, item_type: tool, item_id: test/buy, params: {most: 2000000, cost: 400}"))
	rec := h.run(job{})
	b, err := h.store.Budget(t.Context(), rec.ThreadID)
	if err != nil || b.Own != rec.Cost.Spend || b.Actual != b.Own+400 || b.Active {
		t.Errorf("%+v, %v", b, err)
	}
	if _, by := h.fired(rec.ThreadID); by["buys"].Error != "" || !strings.Contains(by["cannot"].Error, "left") {
		t.Errorf("%+v", by)
	}
	off, err := h.store.Mend().Miscounted(t.Context())
	if err != nil || len(off) > 0 {
		t.Errorf("%v do not add up, %v", off, err)
	}
}

// TestPurseBeforeTheStart: hooks of the start buy too, and their events say so.
func TestPurseBeforeTheStart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = buys()
	h.script(doneScript)
	h.toolItems("buy")
	h.hooks(inHooks("buys", "thread_started", "", "primary: execute, item_type: tool, item_id: test/buy, params: {most: 1000, cost: 400}"))
	rec := h.run(job{})
	if rec.Cost.Spend != modelCalls/2+400 {
		t.Errorf("spent %d", rec.Cost.Spend)
	}
	if fired := events[transcript.HookFired](h, rec.ThreadID, thread.EventHookFired); len(fired) != 1 || fired[0].Spend != 400 {
		t.Errorf("%+v", fired)
	}
}

// TestPurseWithoutBudget: a thread whose ledger row is missing buys nothing.
func TestPurseWithoutBudget(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newRun(h.deps(h.register(job{unbudgeted: true})))
	var f *tool.Fault
	if _, err := r.purse.Hold(t.Context(), 1); !errors.As(err, &f) || f.Code != tool.CodeBudgetExhausted {
		t.Errorf("%v", err)
	}
}
