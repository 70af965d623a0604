// Package notify tells a person, outside of any client, what has become of threads. What
// is due stands in the store, where each notice is claimed before it is sent: it is sent
// once or, when its sender dies, perhaps not, which the next one says in its log.
package notify

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Message is what is told: ids, states and money, no word of what a thread wrote.
type Message struct {
	Event      string        `json:"event"` // a thread.NewsKind, or Several
	ThreadID   thread.ID     `json:"thread_id,omitempty"`
	Status     thread.State  `json:"status,omitempty"`
	Directive  string        `json:"directive,omitempty"`
	QuestionID string        `json:"question_id,omitempty"`
	Spend      thread.Micros `json:"spend"`   // own, in dollars
	Project    string        `json:"project"` // name of its folder
	At         time.Time     `json:"at"`
	Count      int           `json:"count"`                // 1, or how many threads Several tells of
	ThreadIDs  []thread.ID   `json:"thread_ids,omitempty"` // of Several, the first
}

// Several is the event of a message that stands for many.
const Several = "several"

// Channel is one way to tell the person.
type Channel interface {
	Name() string
	Send(context.Context, Message) error
}

// Bounds: a notice that is late by more than late is not sent any more; of more than
// flood at once one message tells.
const (
	late      = time.Hour
	flood     = 10
	atOnce    = 500
	sendTime  = 10 * time.Second
	mostNamed = 10
)

// Sender sends what is due.
type Sender struct {
	Store    store.Store
	Settings config.Notify
	Since    time.Time // events before it, when nobody wanted to be told, are not due
	Channels []Channel
	Project  string // name of its folder
	// Lease takes the right to send, which one process of the project has at a time, or
	// returns an error wrapping [life.ErrHeld].
	Lease func() (life.Hold, error)
	Now   func() time.Time
	Log   zerolog.Logger
}

// Run sends until nothing is due, or leaves it to the process that sends.
func (s *Sender) Run(ctx context.Context) error {
	err := due.Drain(s.Lease, func() error { return s.drain(ctx) }, func() (bool, error) { return s.IsDue(ctx) })
	if errors.Is(err, life.ErrHeld) {
		return nil
	}
	return err
}

// IsDue reports whether there is anything to send.
func (s *Sender) IsDue(ctx context.Context) (bool, error) {
	due, err := s.due(ctx)
	return len(due) > 0, err
}

// Standing is how much there is to send.
func (s *Sender) Standing(ctx context.Context) (st due.Standing, err error) {
	wanted, err := s.due(ctx)
	if st.Threads = len(wanted); st.Threads > 0 {
		st.Oldest = wanted[0].At
	}
	return st, err
}

// drain sends what is due.
func (s *Sender) drain(ctx context.Context) error {
	due, err := s.due(ctx)
	if err != nil {
		return err
	}
	fresh, err := s.fresh(ctx, due)
	if err != nil || len(fresh) == 0 {
		return err
	}
	if len(fresh) <= flood {
		for _, n := range fresh {
			if err := s.send(ctx, n.message, n); err != nil {
				return err
			}
		}
		return nil
	}
	return s.send(ctx, s.several(fresh), fresh...)
}

// notice is what is due, with what is said of it.
type notice struct {
	store.Notice
	message Message
}

// due are the notices that the person wants.
func (s *Sender) due(ctx context.Context) (wanted []notice, err error) {
	q := store.NoticeQuery{Since: s.Since, Kinds: s.kinds(), Children: s.Settings.Children, Most: atOnce}
	for {
		page, err := s.Store.DueNotices(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, n := range page {
			q.After = n.Seq
			one, there, err := s.describe(ctx, n)
			if err != nil {
				return nil, err
			}
			if there {
				wanted = append(wanted, one)
			}
		}
		if len(page) < atOnce {
			return wanted, nil
		}
	}
}

// kinds are those of news that the person wants.
func (s *Sender) kinds() []thread.NewsKind {
	all := []thread.NewsKind{thread.Ended, thread.Asked, thread.Budget80}
	return slices.DeleteFunc(all, func(kind thread.NewsKind) bool { return !s.Settings.Wants(string(kind)) })
}

// describe reports whether the thread of a notice is still there.
func (s *Sender) describe(ctx context.Context, n store.Notice) (notice, bool, error) {
	rec, err := s.Store.Get(ctx, n.ThreadID)
	if errors.Is(err, thread.ErrNotFound) {
		return notice{}, false, nil
	}
	return notice{n, Message{
		Event: string(n.Kind), ThreadID: n.ThreadID, Status: rec.Status, Directive: rec.Directive, QuestionID: n.QuestionID,
		Spend: rec.Cost.Spend, Project: s.Project, At: n.At, Count: 1,
	}}, true, err
}

// fresh leaves out what cannot be sent any more, and says so.
func (s *Sender) fresh(ctx context.Context, due []notice) (fresh []notice, err error) {
	for _, n := range due {
		var why string
		switch {
		case n.Claimed:
			why = "its sender ended before it was done: it may have been sent, and is not sent again"
		case s.Now().Sub(n.At) > late:
			why = "it is due for more than an hour, and is not sent any more"
		default:
			fresh = append(fresh, n)
			continue
		}
		s.Log.Warn().Str("event", n.message.Event).Str("thread_id", string(n.ThreadID)).Msg("notification: " + why)
		if err := s.Store.EndNotice(ctx, n.Seq); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// several is one message for many notices. Each of their threads counts once.
func (s *Sender) several(all []notice) Message {
	m := Message{Event: Several, Project: s.Project, At: s.Now().UTC()}
	told := map[thread.ID]bool{}
	for _, n := range all {
		if told[n.ThreadID] { // it has asked several times, or asked and ended
			continue
		}
		told[n.ThreadID] = true
		m.Spend = m.Spend.Plus(n.message.Spend)
		if len(m.ThreadIDs) < mostNamed {
			m.ThreadIDs = append(m.ThreadIDs, n.ThreadID)
		}
	}
	m.Count = len(told)
	return m
}

// send claims notices, tells of them in every way, and ends them. A failure is logged,
// and not tried again.
func (s *Sender) send(ctx context.Context, m Message, of ...notice) error {
	for _, n := range of {
		if err := s.Store.ClaimNotice(ctx, n.Seq); err != nil {
			return err
		}
	}
	for _, c := range s.Channels {
		bounded, stop := context.WithTimeout(ctx, sendTime)
		err := c.Send(bounded, m)
		stop()
		if err != nil {
			s.Log.Warn().Err(err).Str("by", c.Name()).Str("event", m.Event).Str("thread_id", string(m.ThreadID)).Msg("notification could not be sent")
		}
	}
	for _, n := range of {
		if err := s.Store.EndNotice(ctx, n.Seq); err != nil {
			return err
		}
	}
	s.Log.Info().Str("event", m.Event).Str("thread_id", string(m.ThreadID)).Int("count", m.Count).Msg("notification sent")
	return nil
}
