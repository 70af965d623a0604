package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// lastTurnTime is what a thread has to return what it has, when less is left.
const lastTurnTime = 2 * time.Minute

// lastTurn lets the model return what it has, in one turn that only money
// bounds.
func (r *run) lastTurn(ctx context.Context, over *thread.LimitError, by string) ended {
	r.last = true
	r.nudges = prompt.MaxNudges // there is no turn to do better in
	text := r.onlyReturn(over)
	if err := r.say(text); err != nil {
		return ended{err: err, doing: r.doing()}
	}
	e := r.timed(ctx, max(r.timeLeft(), lastTurnTime), func(ctx context.Context) ended {
		if err := r.mayGoOn(ctx); err != nil {
			return ended{err: err, doing: r.doing()}
		}
		budget, err := r.Store.Budget(ctx, r.ID)
		if err != nil {
			return ended{err: err, doing: r.doing()}
		}
		if done := r.afterStep(ctx, r.turn(ctx, budget)); done != nil {
			return *done
		}
		return ended{result: strings.TrimSpace(r.partial)}
	})
	if e.err != nil {
		return e
	}
	if err := r.checkpoint(r.Transcript.Checkpoint); err != nil {
		return ended{err: err, doing: r.doing()}
	}
	if e.result == "" && e.blocked == "" {
		return ended{err: over, doing: "its last turn, which returned nothing"}
	}
	e.warnings = append(e.warnings, r.cuts.warning(over)...)
	e.warnings = append(e.warnings, fmt.Sprintf("finished early. %v; to finish was decided by %s", over, by))
	return e
}

// onlyReturn leaves the model nothing but to return, and says so. Tools that cannot
// be called any more stay described: with other tools the provider would find nothing
// of the conversation in its cache, in the turn for which there is least money, and some
// models would be given nothing back of what they have thought.
func (r *run) onlyReturn(over *thread.LimitError) string {
	r.toolset.palette = r.toolset.palette.Only(palette.KindReturn)
	how := "with your answer as text. Call no tool"
	if len(r.toolset.palette.Entries) > 0 {
		how = "with " + r.toolset.palette.Entries[0].Name + ", and every output you can give. No other tool can be called"
	}
	return fmt.Sprintf("%v. This is your last turn: return now what you have, %s.", over, how)
}

// affordsLastTurn reports whether there is money for a minimal answer.
func (r *run) affordsLastTurn(budget store.Budget) bool {
	before := r.last
	r.last = true
	defer func() { r.last = before }()
	_, err := r.allowance(budget)
	return err == nil
}
