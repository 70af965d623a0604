package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Answer tells how a set stands, and of its items as many as fit.
type Answer struct {
	Success  bool          `json:"success" jsonschema:"true when every item completed"`
	ThreadID thread.ID     `json:"thread_id" jsonschema:"of the set: wait_threads, get_status and cancel_thread take it"`
	Status   thread.State  `json:"status"`
	Existing bool          `json:"existing,omitempty" jsonschema:"the call found a set that was there"`
	Counts   Counts        `json:"counts"`
	Spend    thread.Micros `json:"spend" jsonschema:"US dollars, of all items that ran in this set"`
	// Items begin with those that have not completed, on the first page.
	Items      []Item         `json:"items" jsonschema:"failed ones first, then by position; those that wait or work only in counts"`
	NextCursor string         `json:"next_cursor,omitempty" jsonschema:"give it as set"`
	Error      string         `json:"error,omitempty"`
	Waiting    []view.Waiting `json:"waiting,omitempty" jsonschema:"open questions of its threads"`
	Next       string         `json:"next,omitempty" jsonschema:"what to call next"`
}

// Tells implements [view.Teller].
func (a Answer) Tells() []view.Told {
	told := []view.Told{{ThreadID: a.ThreadID, Status: a.Status}}
	for _, w := range a.Waiting {
		told = append(told, view.Told{ThreadID: w.ThreadID, Asks: true})
	}
	return told
}

// Counts are the items of a set by how they stand.
type Counts struct {
	Items     int `json:"items"`
	Completed int `json:"completed"`
	Reused    int `json:"reused,omitempty"` // of those completed: by a call before
	Failed    int `json:"failed"`
	Working   int `json:"working"`
	Waiting   int `json:"waiting"`
}

// Item is one item that has ended.
type Item struct {
	Item     int          `json:"item"` // position in items, from 0
	ThreadID thread.ID    `json:"thread_id,omitempty"`
	Status   thread.State `json:"status"`
	Reused   bool         `json:"reused,omitempty"`
	view.End
}

// Page is what of the items is asked for.
type Page struct {
	Cursor string
	Room   int  // bytes of JSON; 0: pageItems items
	Whole  bool // for a person: with texts that say what outputs say
	// Waiting are the questions that were open when the wait for the set was over.
	Waiting []view.Waiting
}

// pageItems is how many items an answer has that is not bounded by its bytes.
const pageItems = 1000

// NoSet says that a thread is no set.
func NoSet(id thread.ID) *tool.Fault {
	return tool.Faultf(tool.CodeBadArguments, "thread %s is no set of map_threads", id).
		WithHint("get_status shows what it is").WithTry("rye-mcp threads show %s", id)
}

// Answer is how a set stands.
func (m *Mapper) Answer(ctx context.Context, opened Opened, page Page) (Answer, error) {
	rec, err := m.Threads.Examine(ctx, opened.ID)
	if err != nil {
		return Answer{}, err
	}
	entries, err := m.Threads.Store.Entries(ctx, opened.ID, 0, MaxItems)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{
		Success: rec.Status == thread.Completed, ThreadID: opened.ID, Status: rec.Status, Existing: opened.Existing,
		Counts: count(entries), Items: []Item{},
	}
	if budget, err := m.Threads.Store.Budget(ctx, opened.ID); err == nil {
		a.Spend = budget.Actual
	} else if !errors.Is(err, store.ErrNoBudget) {
		return Answer{}, err
	}
	if rec.Outcome != nil && rec.Outcome.Error != nil {
		a.Error = rec.Outcome.Error.Message
	}
	if rec.Status.Terminal() && a.Counts.Items > 0 && a.Counts.Completed == a.Counts.Items {
		// The items that had failed when the set ended were resumed.
		a.Success, a.Status, a.Error = true, thread.Completed, ""
	}
	a.Next = next(rec, a.Counts)
	if a.Counts.Waiting > 0 && a.Counts.Working == 0 {
		if why := m.waitsFor(ctx, rec); why != "" {
			a.Next = fmt.Sprintf("its items wait: %s. %s", why, a.Next)
		}
	}
	if !rec.Status.Terminal() && len(page.Waiting) > 0 {
		if err := a.addQuestions(&page); err != nil {
			return Answer{}, err
		}
	}
	return a, m.addItems(ctx, &a, entries, page)
}

// addQuestions adds as many questions as take up half of the room, one in any case, and
// leaves the rest of the room to the items. get_status of the set has all of them.
func (a *Answer) addQuestions(page *Page) error {
	room := page.Room
	for i, w := range page.Waiting {
		raw, err := json.Marshal(w)
		if err != nil {
			return err
		}
		left := room - len(raw) - 1
		if page.Room > 0 && i > 0 && left < page.Room/2 {
			break
		}
		room = left
		a.Waiting = append(a.Waiting, w)
	}
	if page.Room > 0 { // 0 would be no bound
		page.Room = max(1, room)
	}
	a.Next = view.WaitingNext(a.Waiting)
	return nil
}

func count(entries []store.Entry) Counts {
	c := Counts{Items: len(entries)}
	for _, e := range entries {
		switch {
		case e.Status == thread.Completed:
			c.Completed++
			if e.Reused {
				c.Reused++
			}
		case e.Waits() || e.Retries:
			c.Waiting++
		case e.Over():
			c.Failed++
		default:
			c.Working++
		}
	}
	return c
}

func next(rec thread.Record, c Counts) string {
	switch {
	case !rec.Status.Terminal():
		return "map_threads with this set waits further; cancel_thread stops it"
	case c.Completed < c.Items:
		return "map_threads with the same directive, items and request_key runs what has not completed; resume_thread goes on with a failed thread"
	}
	return ""
}

// addItems adds the items that have ended and fit: those that failed first, since the
// caller has to do something about them.
func (m *Mapper) addItems(ctx context.Context, a *Answer, entries []store.Entry, page Page) error {
	ordered := make([]store.Entry, 0, len(entries))
	for _, failed := range []bool{true, false} {
		for _, e := range entries {
			if e.Over() && (e.Status != thread.Completed) == failed {
				ordered = append(ordered, e)
			}
		}
	}
	from, err := place(page.Cursor, ordered)
	if err != nil {
		return err
	}
	room := page.Room - answerBytes
	for i, e := range ordered[from:] {
		one, err := m.item(ctx, e, page.Whole)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(one)
		if err != nil {
			return err
		}
		if room -= len(raw) + 1; i > 0 && (page.Room > 0 && room < 0 || i == pageItems) {
			a.NextCursor = cursorOf(a.ThreadID, e)
			return nil
		}
		a.Items = append(a.Items, one)
	}
	return nil
}

// answerBytes is what the answer has beside its items, at most.
const answerBytes = 1500

func (m *Mapper) item(ctx context.Context, e store.Entry, whole bool) (Item, error) {
	i := Item{Item: e.Position, ThreadID: e.Last, Status: e.Status, Reused: e.Reused}
	problem := e.Refused
	switch {
	case problem != nil:
		i.Status = thread.Error
	case e.Deleted():
		i.Status, problem = thread.Error, &thread.Problem{Code: "deleted", Message: "its thread was deleted, and its result with it"}
	default:
		rec, err := m.Threads.Store.Get(ctx, e.Last)
		if err != nil && !errors.Is(err, thread.ErrNotFound) {
			return i, err
		}
		i.End = view.ResultOf(e.Last, rec).End
		if !whole {
			i.End = i.Brief()
		}
		return i, nil
	}
	i.End = view.End{Error: problem.Message, Problem: problem}
	return i, nil
}

// A cursor names the set, the item that a page begins with, and whether that has failed:
// items that end meanwhile change no place behind it.
func cursorOf(set thread.ID, e store.Entry) string {
	mark := "f"
	if e.Status == thread.Completed {
		mark = "c"
	}
	return string(set) + cursorMark + mark + strconv.Itoa(e.Position)
}

// cursorMark is between the id of a set and the place of a cursor; no id of a thread that
// has a directive's contains it.
const cursorMark = "#"

// ParseCursor reads the id of a set, or a cursor.
func ParseCursor(text string) (set thread.ID, cursor string) {
	id, cursor, _ := strings.Cut(text, cursorMark)
	return thread.ID(id), cursor
}

// place is the first of the ordered entries that a cursor leaves.
func place(cursor string, ordered []store.Entry) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	position, err := strconv.Atoi(cursor[1:])
	if err != nil || position < 0 || cursor[0] != 'c' && cursor[0] != 'f' {
		return 0, fmt.Errorf("%w: %q", store.ErrBadCursor, item.Shown(item.Clip(cursor, 40)))
	}
	for i, e := range ordered {
		completed := e.Status == thread.Completed
		if completed == (cursor[0] == 'c') && e.Position >= position || completed && cursor[0] == 'f' {
			return i, nil
		}
	}
	return len(ordered), nil
}
