// Package news tells a client what has become of the threads that it has started
// without its asking: which have ended, and which ask. The store has what it has to be
// told, so that a client that is restarted still hears of it.
package news

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Room is how long what is told beside an answer may be, in bytes of JSON.
const Room = 200

// flood is from how many on, beyond those that have room, the rest is told by its number
// alone: it would follow the client through as many answers.
const flood = 50

// asks is what is told of a thread that asks, in place of its state.
const asks = "asks"

// Client is who is told: a connection to a server.
type Client struct {
	Process thread.Process // of the program that has started the server, or of a server of many
	Session string         // of a server of many clients; empty for one
}

// Origin is how the threads of a client are known.
func (c Client) Origin(name string) thread.Origin {
	if name == "" {
		name = "unnamed"
	}
	key, err := json.Marshal(c)
	if err != nil {
		panic("bug; numbers and strings always encode: " + err.Error())
	}
	return thread.Origin{Client: name, Key: string(key)}
}

// Desk tells clients.
type Desk struct {
	Threads *threads.Threads
	// Self and Serves are set in a server of many clients: its own process, and whether
	// one of its sessions goes on.
	Self   thread.Process
	Serves func(session string) bool

	mu  sync.Mutex
	met map[string]bool // by key: clients that have what their predecessors left
}

// Since is what has become of the threads of a client since it was told last: by id the
// state that a thread has ended in, or asks; under more how many further there are. It
// is written as one JSON object of at most [Room] bytes.
type Since struct {
	entries []entry
	more    int
}

type entry struct{ id, status string }

// IsEmpty reports whether there is nothing to tell.
func (s Since) IsEmpty() bool { return len(s.entries) == 0 && s.more == 0 }

// MarshalJSON writes the entries in their order.
func (s Since) MarshalJSON() ([]byte, error) {
	var members []string
	for _, e := range s.entries {
		members = append(members, e.json())
	}
	if s.more > 0 {
		members = append(members, moreJSON(s.more))
	}
	return []byte("{" + strings.Join(members, ",") + "}"), nil
}

func (e entry) json() string { return text(e.id) + ":" + text(e.status) }

func moreJSON(n int) string { return `"more":` + strconv.Itoa(n) }

func text(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic("bug; strings always encode: " + err.Error())
	}
	return string(quoted)
}

// Since is what a client is to be told beside an answer, which tells some of it itself.
// It counts as told by then. With nothing new it costs a look at two numbers.
func (d *Desk) Since(ctx context.Context, who thread.Origin, answer []view.Told) (Since, error) {
	if err := d.meet(ctx, who); err != nil {
		return Since{}, err
	}
	due, err := d.Threads.Store.Untold(ctx, who.Key)
	if err != nil || len(due) == 0 {
		return Since{}, err
	}
	since, told, err := d.compose(ctx, due, answer)
	if err != nil || len(told) == 0 {
		return Since{}, err
	}
	return since, d.Threads.Store.Tell(ctx, told)
}

// compose chooses what is told of what is due, and returns which of that counts as told.
func (d *Desk) compose(ctx context.Context, due []thread.News, answer []view.Told) (s Since, told []int64, err error) {
	whole := Room - len(`{}`) - len(`,`) - len(moreJSON(len(due)))
	room, counted := whole, 0
	var rest []int64
	for _, n := range due {
		e, err := d.entryOf(ctx, n)
		if err != nil {
			return Since{}, nil, err
		}
		size := len(e.json()) + len(`,`)
		switch {
		case inAnswer(n, e, answer), slices.Contains(s.entries, e):
			told = append(told, n.Seq)
		case len(rest) == 0 && size <= room:
			room -= size
			s.entries = append(s.entries, e)
			told = append(told, n.Seq)
		case size > whole: // its id never has room
			counted++
			told = append(told, n.Seq)
		default:
			rest = append(rest, n.Seq)
		}
	}
	if s.more = len(rest) + counted; len(rest) > flood {
		told = append(told, rest...)
	}
	return s, told, nil
}

// entryOf is what is told of one piece of news, by the id that the client knows: that of
// the thread which it has started, however often another has taken over.
func (d *Desk) entryOf(ctx context.Context, n thread.News) (entry, error) {
	rec, err := d.Threads.Store.Get(ctx, n.ThreadID)
	if err != nil {
		return entry{}, err
	}
	e := entry{id: string(n.ThreadID), status: string(rec.Status)}
	if n.Kind == thread.Asked {
		e.status = asks
		return e, nil
	}
	for rec.ContinuationOf != "" {
		before, err := d.Threads.Store.Get(ctx, rec.ContinuationOf)
		if err != nil || before.Status != thread.Continued {
			return e, err
		}
		e.id, rec = string(before.ThreadID), before
	}
	return e, nil
}

// inAnswer reports whether an answer tells what is due itself.
func inAnswer(n thread.News, e entry, answer []view.Told) bool {
	return slices.ContainsFunc(answer, func(t view.Told) bool {
		if n.Kind == thread.Asked {
			return t.Asks && t.ThreadID == n.ThreadID
		}
		return t.Status.Terminal() && (t.ThreadID == n.ThreadID || string(t.ThreadID) == e.id)
	})
}

// maxMet bounds how many clients are remembered; those of HTTP come and go.
const maxMet = 10_000

// meet gives a client that comes for the first time what those of its name have left
// that are gone: their threads go on, and somebody is to be told.
func (d *Desk) meet(ctx context.Context, who thread.Origin) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.met[who.Key] {
		return nil
	}
	keys, err := d.Threads.Store.Heirless(ctx, who.Client)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if key == who.Key || !d.isGone(key) {
			continue
		}
		if err := d.Threads.Store.Inherit(ctx, key, who); err != nil {
			return err
		}
	}
	if d.met == nil || len(d.met) >= maxMet {
		d.met = map[string]bool{}
	}
	d.met[who.Key] = true
	return nil
}

// isGone reports whether a client is known to be there no more.
func (d *Desk) isGone(key string) bool {
	var c Client
	if json.Unmarshal([]byte(key), &c) != nil {
		return true
	}
	if d.Serves != nil && c.Process == d.Self && c.Session != "" {
		return !d.Serves(c.Session)
	}
	return d.Threads.Life.Over(c.Process)
}
