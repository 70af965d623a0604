package threads

import (
	"errors"
	"maps"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/daily"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Fault tells any error of this room and those right of it to a model: what
// was wrong, what is valid, what to call next.
func Fault(err error) *tool.Fault {
	if known, ok := errors.AsType[*tool.Fault](err); ok {
		return known
	}
	if f := budgetFault(err); f != nil {
		return f
	}
	if f := chainFault(err); f != nil {
		return f
	}
	if f := awayFault(err); f != nil {
		return f
	}
	var (
		unknownLimit *limit.UnknownError
		badLimit     *limit.ValueError
		tooMuch      *limit.OverrideError
		noProvider   *provider.NoProviderError
		noModel      *provider.UnknownModelError
		noKey        *provider.KeyError
	)
	var (
		noUser   *place.NoUserSpaceError
		noPlace  *place.NoPlaceError
		badLabel *thread.LabelError
	)
	switch {
	case errors.As(err, &noUser):
		return tool.Faultf(tool.CodeUnsupported, "%w", err).WithHint("tell the person").WithTry("%s", noUser.Try())
	case errors.As(err, &noPlace):
		return tool.Faultf(tool.CodeUnsupported, "%w", err).WithHint("tell the person").WithTry("%s", noPlace.Try())
	case errors.As(err, &unknownLimit):
		return tool.Faultf(tool.CodeInvalidLimits, "%w", err).With("valid_limits", item.LimitNames())
	case errors.As(err, &badLimit):
		return tool.Faultf(tool.CodeInvalidLimits, "%w", err).With("valid_limits", item.LimitNames())
	case errors.As(err, &tooMuch):
		return overrideFault(tooMuch)
	case errors.As(err, &noProvider), errors.As(err, &noModel):
		return tool.Faultf(tool.CodeNoProvider, "%w", err).WithHint("%s", hintOf(noProvider)).
			WithTry("export ANTHROPIC_API_KEY=…, or rye-mcp config set --user agent provider.default NAME; rye-mcp models shows which there are")
	case errors.As(err, &noKey):
		return tool.Faultf(tool.CodeNoProvider, "%w", err).WithHint("tell the person, or choose a model of another provider").WithTry("%s", noKey.Try())
	case errors.As(err, new(*thread.DeletedError)):
		return tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("nothing of it is left; list_threads shows the threads of this project")
	case errors.Is(err, thread.ErrNotFound):
		return tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("list_threads shows the threads of this project")
	case errors.Is(err, thread.ErrSettled): // somebody has ended it, or stops it, at the same time
		return tool.Faultf(tool.CodeConflict, "%w", err).WithHint("get_status tells how it stands")
	case errors.Is(err, thread.ErrUnfit), errors.Is(err, thread.ErrBadID):
		return tool.Faultf(tool.CodeBadArguments, "%w", err).
			WithHint("give the directive a shorter id, or put right what lies in the state folder of the threads")
	case errors.Is(err, store.ErrKeyReused):
		return tool.Faultf(tool.CodeRequestKeyReused, "%w", err).WithHint("use a request_key of its own for this work")
	case errors.Is(err, store.ErrReplaced):
		return tool.Faultf(tool.CodeUnsupported, "%w", err).WithHint("call again, which opens what is there now; if that is refused too, ask the person to start this server again")
	case errors.As(err, &badLabel):
		return tool.Faultf(tool.CodeBadArguments, "%w", badLabel)
	case errors.Is(err, store.ErrBadCursor):
		return tool.Faultf(tool.CodeBadArguments, "%w", err).WithHint("give back next_cursor of the page before, unchanged")
	}
	return action.Fault(err)
}

// hintOf says what a model can do where no provider can be used (none), or none with the
// model that it named. A person who has set a key in a shell does not know why it is not seen.
func hintOf(none *provider.NoProviderError) string {
	switch {
	case none == nil:
		return "name one of these tiers, or leave the model out"
	case len(none.Variables) == 0:
		return "tell the person"
	}
	return `tell the person: this server sees the variables that it was started with, and a client does not always hand on those of a shell; ` +
		`keys go into "env" of its entry in the client's settings (rye-mcp help guides/install)`
}

// awayFault tells that the server of the thread store does not do what it is asked for; nil for
// other errors.
func awayFault(err error) *tool.Fault {
	if !errors.Is(err, store.ErrAway) {
		return nil
	}
	f := tool.Faultf(tool.CodeStore, "%w", err).
		WithHint("Nothing can be done about threads before that is over; those that run may go on. Call again in a while, and tell the person if it stays so; items can be used meanwhile.")
	if told, is := errors.AsType[interface {
		error
		Try() string
	}](err); is {
		f = f.WithTry("%s", told.Try())
	}
	return f
}

// WithAway is an error in which nobody has yet told that the thread store is away, with that.
func WithAway(err error) error {
	if _, told := errors.AsType[*tool.Fault](err); told || !errors.Is(err, store.ErrAway) {
		return err
	}
	return awayFault(err)
}

// GoesOnFault tells that a thread has been started of which nothing more can be told.
func GoesOnFault(id thread.ID, err error) *tool.Fault {
	f := *Fault(err) // others may be told the same one
	f.Details = maps.Clone(f.Details)
	return f.With("thread_id", id).WithHint("thread %s was started and may go on: wait_threads with this thread_id. %s", id, f.Hint)
}

// IsTransient tells the failures that say nothing of what was to be started: a later look
// may find the provider of its model there, or the store.
func IsTransient(err error) bool {
	return StoreIsAway(err) || errors.Is(err, store.ErrFenced) || err != nil && Fault(err).Code == tool.CodeNoProvider
}

// StoreIsAway reports whether a failure is that of the thread store, which nothing can be
// started without.
func StoreIsAway(err error) bool {
	return errors.As(err, new(*thread.BusyError)) || errors.Is(err, store.ErrAway)
}

// overrideFault tells how far a limit may be raised, and who may raise it further.
func overrideFault(e *limit.OverrideError) *tool.Fault {
	f := tool.Faultf(tool.CodeInvalidLimits, "%w", e).With("limit", e.Name).With("valid_maximum", e.Most)
	if e.Below {
		return f.WithHint("give %s at most %v, or leave it out", e.Name, e.Most)
	}
	return f.WithHint("give %s at most %v; more is for the person to allow", e.Name, e.Most).
		WithTry("limits.max_override in your own settings, or --limit %s=N of rye-mcp run", e.Name)
}

// budgetFault tells what keeps a parent from starting a child; nil for other
// errors.
func budgetFault(err error) *tool.Fault {
	var (
		short  *store.InsufficientError
		today  *daily.ExceededError
		spawns *store.SpawnsError
		depth  *limit.DepthError
	)
	switch {
	case errors.As(err, &short):
		return tool.Faultf(tool.CodeBudgetExhausted, "%w", err).
			With("requested", short.Requested).With("remaining", short.Remaining).
			WithHint("give limits with a spend of at most %v, or wait until running children have ended and free what they did not use",
				short.Remaining.Dollars())
	case errors.As(err, &today):
		return tool.Faultf(tool.CodeBudgetExhausted, "%w", today).
			With("limit", "daily_spend").With("remaining", today.Left).With("requested", today.Asked).With("renews_at", today.Renews.Format(time.RFC3339)).
			WithHint("wait until then, give limits with a spend of at most %v, or ask the person to raise limits.daily_spend in their own settings",
				today.Left.Dollars())
	case errors.As(err, &spawns):
		return tool.Faultf(tool.CodeSpawnsExhausted, "%w", err).WithHint("do the rest of the work in this thread")
	case errors.As(err, &depth):
		return tool.Faultf(tool.CodeDepthExhausted, "%w", err).WithHint("do the work in this thread")
	case errors.Is(err, store.ErrParentGone), errors.Is(err, store.ErrNoBudget):
		return tool.Faultf(tool.CodeParentGone, "%w", err)
	}
	return nil
}

// TryUntilEnded is what a person can do who has to wait for the end of a thread, by its id.
const TryUntilEnded = "rye-mcp threads wait %[1]s, or rye-mcp threads cancel %[1]s, and then again"

// chainFault tells what keeps a thread from being continued; nil for other
// errors.
func chainFault(err error) *tool.Fault {
	var (
		linked  *store.LinkedError
		working *store.PredecessorError
	)
	switch {
	case errors.As(err, &linked):
		return tool.Faultf(tool.CodeConflict, "%w", linked).With("continued_by", linked.By).
			WithHint("wait_threads or get_status of %s; resume that when it has ended", linked.By).WithTry(TryUntilEnded, linked.By)
	case errors.As(err, &working):
		return tool.Faultf(tool.CodeConflict, "%w", working).With("thread_id", working.Thread).
			WithHint("wait_threads until %s has ended", working.Thread).WithTry(TryUntilEnded, working.Thread)
	}
	return nil
}
