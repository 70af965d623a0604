package mirror

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Rows are the threads of a project.
type Rows interface {
	Get(context.Context, thread.ID) (thread.Record, error)
	List(context.Context, store.Filter) (rows []thread.Record, next string, err error)
}

// Mirror is a server with the copies of the threads of a project.
type Mirror struct {
	Client  *langgraph.Client
	Graph   string // that the threads belong to there
	Node    string // as which states are written; empty: the server chooses
	Place   string // id of the place of the project's threads
	Project string // what people call the project
	Rows    Rows
	Records records.Records
	// Clean takes out of a text what must not leave this machine; JSON stays JSON. It may
	// be nil.
	Clean       func([]byte) []byte
	Crashpoints thread.Crashpoints
	Log         zerolog.Logger
}

// The crash points of sending a thread, in order.
const (
	CrashTaken   thread.Crashpoint = "mirror.taken"   // it is being sent
	CrashCreated thread.Crashpoint = "mirror.created" // it is there, perhaps without anything said
	CrashState   thread.Crashpoint = "mirror.state"   // one more part of its state is there
	CrashPatched thread.Crashpoint = "mirror.patched" // all is there, and it is still noted
	CrashDeleted thread.Crashpoint = "mirror.deleted" // it is away there, and still noted
)

// Crashpoints lists the crash points of sending a thread.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashTaken, CrashCreated, CrashState, CrashPatched, CrashDeleted}
}

const (
	// partBytes and partMessages are what one request writes of a state at most, unless one
	// message alone is more.
	partBytes    = 1 << 20
	partMessages = 500
)

// Send brings the copy of a thread to what the thread is now: made, changed or away. It
// returns whether the thread may still change. With whole, all of its state is written
// anew.
func (m *Mirror) Send(ctx context.Context, id thread.ID, whole bool) (lives bool, err error) {
	rec, err := m.Rows.Get(ctx, id)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		return false, m.gone(ctx, id, err)
	case err != nil:
		return false, err
	case !isMirrored(rec):
		return false, nil
	}
	if err := m.put(ctx, rec, whole); err != nil {
		return false, err
	}
	// Another machine may have deleted it meanwhile, and have sent that before.
	if _, err = m.Rows.Get(ctx, id); errors.Is(err, thread.ErrNotFound) {
		return false, m.gone(ctx, id, err)
	}
	return !rec.Status.Terminal(), err
}

// put makes the copy of a thread, or brings it to what the thread is now.
func (m *Mirror) put(ctx context.Context, rec thread.Record, whole bool) error {
	at, forked := idOf(m.Place, rec)
	metadata := m.metadata(rec, at)
	there, err := m.Client.Create(ctx, at, metadata)
	if err != nil {
		return err
	}
	m.Crashpoints.At(CrashCreated)
	known := m.isOf(there, rec.ThreadID)
	if known && there.Graph() != m.Graph { // the settings have changed since
		if _, err := m.Client.Patch(ctx, at, map[string]any{langgraph.GraphKey: m.Graph}); err != nil {
			return err
		}
	}
	// A copy that was made for a fork begins with the words of another thread: it is replaced
	// as a whole.
	whole = whole || forked && !known
	after := seqOf(there)
	if whole || !known {
		after = 0
	}
	news, err := m.read(rec.ThreadID, at, after)
	if err != nil && rec.Status.Terminal() {
		m.Log.Warn().Err(err).Str("thread_id", string(rec.ThreadID)).Msg("mirror: the transcript cannot be read as a whole, and is sent as far as it can")
	}
	if err := m.say(ctx, at, news.messages, whole); err != nil {
		return err
	}
	metadata[keySeq] = news.seq
	if _, err := m.Client.Patch(ctx, at, metadata); err != nil {
		return err
	}
	m.Crashpoints.At(CrashPatched)
	return nil
}

// say writes messages into the state of a thread there, in place of all others or behind
// them. Those that are there already take their own place.
func (m *Mirror) say(ctx context.Context, at uuid.UUID, messages []langgraph.Message, anew bool) error {
	for anew || len(messages) > 0 {
		n := part(messages)
		write := m.Client.Append
		if anew {
			write, anew = m.Client.Replace, false
		}
		if err := write(ctx, at, m.Node, messages[:n]); err != nil {
			if errors.Is(err, langgraph.ErrNotFound) {
				return fmt.Errorf("%w (graph %q)", err, m.Graph)
			}
			return err
		}
		m.Crashpoints.At(CrashState)
		messages = messages[n:]
	}
	return nil
}

// part is how many messages go into one request.
func part(messages []langgraph.Message) int {
	bytes := 0
	for i, msg := range messages {
		bytes += len(msg.Content)
		for _, call := range msg.ToolCalls {
			for _, value := range call.Args {
				if text, is := value.(string); is {
					bytes += len(text)
				}
			}
		}
		if i > 0 && (bytes > partBytes || i >= partMessages) {
			return i
		}
	}
	return len(messages)
}

// gone takes the copy of a thread away that has no row, unless it has records: rows can be
// lost, and come back.
func (m *Mirror) gone(ctx context.Context, id thread.ID, why error) error {
	if _, deleted := errors.AsType[*thread.DeletedError](why); !deleted {
		if _, err := m.Records.Of(id).Meta().Peek(); err == nil {
			return nil
		}
	}
	return m.remove(ctx, id)
}

// remove takes the copy of a thread away that is no more, wherever it was made.
func (m *Mirror) remove(ctx context.Context, id thread.ID) error {
	if err := m.Client.Delete(ctx, IDOf(m.Place, id)); err != nil {
		return err
	}
	err := m.each(ctx, map[string]any{keyPlace: m.Place, keyThread: string(id)}, func(t langgraph.Thread) error {
		if !m.isOf(t, id) {
			return nil // somebody's copy of it
		}
		return m.Client.Delete(ctx, t.ID)
	})
	if err == nil {
		m.Crashpoints.At(CrashDeleted)
	}
	return err
}

// mostThreads is how many threads are looked at there.
const mostThreads = 200_000

// each visits the threads there whose metadata have some values, as they were when the
// visit began.
func (m *Mirror) each(ctx context.Context, metadata map[string]any, visit func(langgraph.Thread) error) error {
	var all []langgraph.Thread
	seen := map[uuid.UUID]bool{}
	for {
		page, err := m.Client.Search(ctx, metadata, len(all))
		if err != nil {
			return err
		}
		news := false
		for _, t := range page {
			news = news || !seen[t.ID]
			seen[t.ID] = true
		}
		all = append(all, page...)
		// A server that knows no offsets gives the same page for ever.
		if len(page) < langgraph.PageSize || !news || len(all) >= mostThreads {
			break
		}
	}
	for _, t := range all {
		if !seen[t.ID] {
			continue
		}
		delete(seen, t.ID)
		if err := visit(t); err != nil {
			return err
		}
	}
	return nil
}
