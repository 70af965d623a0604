package mirror

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Difference is a thread that is not the same here and there.
type Difference struct {
	ThreadID thread.ID `json:"thread_id,omitempty"` // here
	ID       uuid.UUID `json:"mirror_id"`           // there
	What     What      `json:"what"`
}

// What is the kind of a difference.
type What string

// The differences.
const (
	Missing What = "missing" // there is no copy there
	Behind  What = "behind"  // the copy is not what the thread is now
	Extra   What = "extra"   // the thread is no more, and its copy still there
	Copied  What = "copied"  // somebody has copied a thread there, or begun a fork; nothing is wrong
)

// Compare says what differs, in the order of the threads' ids.
func (m *Mirror) Compare(ctx context.Context) (all []Difference, err error) {
	there := map[uuid.UUID]langgraph.Thread{}
	err = m.each(ctx, map[string]any{keyPlace: m.Place}, func(t langgraph.Thread) error {
		there[t.ID] = t
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = m.EachHere(ctx, func(rec thread.Record) error {
		at, _ := idOf(m.Place, rec)
		t, is := there[at]
		delete(there, at)
		switch {
		case !is:
			all = append(all, Difference{rec.ThreadID, at, Missing})
		case m.differs(rec, at, t):
			all = append(all, Difference{rec.ThreadID, at, Behind})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id, t := range there {
		if t.Text(keyPlace) != m.Place {
			continue // a server that searches for nothing
		}
		d := Difference{thread.ID(t.Text(keyThread)), id, Copied}
		if m.isOurs(t) && t.Metadata[keyPending] == nil {
			d.What = Extra
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Difference) int {
		if c := strings.Compare(string(a.ThreadID), string(b.ThreadID)); c != 0 {
			return c
		}
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	return all, nil
}

// differs reports whether the copy of a thread is not what the thread is now.
func (m *Mirror) differs(rec thread.Record, at uuid.UUID, t langgraph.Thread) bool {
	for key, value := range m.metadata(rec, at) {
		if !reflect.DeepEqual(t.Metadata[key], value) {
			return true
		}
	}
	news, _ := m.read(rec.ThreadID, at, seqOf(t)) // as far as it can be read
	return len(news.messages) > 0
}

// EachHere visits the threads of the project that have a copy, newest first.
func (m *Mirror) EachHere(ctx context.Context, visit func(thread.Record) error) error {
	f := store.Filter{Limit: store.MaxPage}
	for {
		rows, next, err := m.Rows.List(ctx, f)
		if err != nil {
			return err
		}
		for _, rec := range rows {
			if !isMirrored(rec) {
				continue
			}
			if err := visit(rec); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		f.Cursor = next
	}
}

// abandoned is how old a fork is of which there is still no thread here.
const abandoned = time.Hour

// Sweep takes away there what is no more here: it notes the threads whose copies are still
// there, for the next sender, and deletes copies for forks that never came about.
func (m *Mirror) Sweep(ctx context.Context, note func(context.Context, thread.ID) error, now time.Time) (did string, err error) {
	extra, forks := 0, 0
	err = m.each(ctx, map[string]any{keyPlace: m.Place}, func(t langgraph.Thread) error {
		switch {
		case m.isAbandoned(t, now):
			forks++
			return m.Client.Delete(ctx, t.ID)
		case !m.isOurs(t) || t.Metadata[keyPending] != nil:
			return nil
		}
		id, err := thread.ParseID(t.Text(keyThread))
		if err != nil {
			return nil //nolint:nilerr // nobody's
		}
		_, err = m.Rows.Get(ctx, id)
		if _, deleted := errors.AsType[*thread.DeletedError](err); deleted {
			extra++
			return note(ctx, id)
		}
		if errors.Is(err, thread.ErrNotFound) {
			return nil // rows that were lost are no reason to delete
		}
		return err
	})
	if extra > 0 || forks > 0 {
		did = fmt.Sprintf("%d threads are no more here, %d forks were given up", extra, forks)
	}
	return did, err
}

// isAbandoned reports whether a thread there is a copy that was made for a fork which never
// came about.
func (m *Mirror) isAbandoned(t langgraph.Thread, now time.Time) bool {
	since, is := t.Metadata[keyPending].(float64)
	return is && m.isOurs(t) && now.Sub(time.Unix(int64(min(max(since, 0), 1<<40)), 0)) > abandoned
}
