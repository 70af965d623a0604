package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/mirror"
	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/mirrors"
	"github.com/rye-mcp/rye-mcp/runtime/telemetry"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// To whom something of threads is sent.
const (
	dueMirror  = "mirror"
	dueTraces  = "traces"
	dueNotices = "notices"
)

// dueState is what is still to be sent of a project's threads.
type dueState struct {
	To       string     `json:"to"`               // mirror, traces or notices
	Mirror   string     `json:"mirror,omitempty"` // hash of its address; empty: this machine's
	Threads  int        `json:"threads"`
	Oldest   *time.Time `json:"oldest,omitempty"` // when the one that waits longest was noted
	Sender   string     `json:"sender,omitempty"` // the machine whose turn it is
	Failure  string     `json:"failure,omitempty"`
	FailedAt *time.Time `json:"failed_at,omitempty"`
}

func newDueState(to string, s due.Standing) dueState {
	return dueState{
		To: to, Threads: s.Threads, Oldest: unlessZero(s.Oldest), Sender: s.Sender, Failure: s.Failure, FailedAt: unlessZero(s.FailedAt),
	}
}

func unlessZero(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// dueOf is what is due of a project's threads: for mirrors always, else where there is any.
func dueOf(ctx context.Context, sys System, p *project) (all []dueState, err error) {
	if p.state.site.shared() {
		if all, err = p.mirroring.standings(ctx); err != nil {
			return nil, p.state.site.fault(err)
		}
	}
	files, err := dueInFiles(p.state, !p.state.site.shared() && p.mirroring.on())
	if err != nil {
		return nil, err
	}
	all = append(all, files...)
	sender, err := p.sender(sys, zerolog.Nop())
	if err != nil || sender == nil {
		return all, err
	}
	notices, err := sender.Standing(ctx)
	if err == nil && notices.Threads > 0 {
		all = append(all, newDueState(dueNotices, notices))
	}
	return all, err
}

// dueInFiles is what is noted in files of this machine. Nothing is opened for it.
func dueInFiles(state *projectState, mirrored bool) (all []dueState, err error) {
	home := state.Home()
	copies, err := due.Notes{Dir: home.Mirror()}.Standing()
	if err != nil {
		return nil, err
	}
	if mirrored || copies.Threads > 0 {
		copies.Failure, copies.FailedAt = restIn(state).Failed()
		all = append(all, newDueState(dueMirror, copies))
	}
	spans, err := telemetry.NotesIn(home.Traces()).Standing()
	if err == nil && spans.Threads > 0 {
		all = append(all, newDueState(dueTraces, spans))
	}
	return all, err
}

func restIn(state *projectState) mirror.Rest {
	return mirror.Rest{File: filepath.Join(state.Home().Dir, "mirror.rest")}
}

// standings say how far each mirror of a project is behind whose threads several machines
// have.
func (m *mirroring) standings(ctx context.Context) (all []dueState, err error) {
	if now, err := m.store.Now(ctx); err != nil || now == nil {
		return nil, err
	}
	at := m.rows.Load()
	if at == nil {
		return nil, nil
	}
	found, err := mirrors.Standings(ctx, at.Pool())
	for _, s := range found {
		one := newDueState(dueMirror, s.Standing)
		if !m.on() || s.Mirror != m.sharedOutbox().Mirror {
			one.Mirror = s.Mirror
		}
		all = append(all, one)
	}
	return all, err
}

// text is one line for people.
func (s dueState) text(now time.Time) string {
	var b strings.Builder
	if s.Mirror != "" {
		fmt.Fprintf(&b, "of other machines (%.12s): ", s.Mirror)
	}
	if s.Threads == 0 {
		b.WriteString("nothing is due")
	} else {
		fmt.Fprintf(&b, "%s due", counted(s.Threads, "thread"))
	}
	if s.Oldest != nil {
		fmt.Fprintf(&b, ", the oldest for %s", plain.Age(now.Sub(*s.Oldest)))
	}
	if s.Sender != "" {
		fmt.Fprintf(&b, "; %s sends", s.Sender)
	}
	if s.Failure != "" {
		b.WriteString("; the last attempt failed")
		if s.FailedAt != nil {
			fmt.Fprintf(&b, " %s ago", plain.Age(now.Sub(*s.FailedAt)))
		}
		fmt.Fprintf(&b, ": %s", s.Failure)
	}
	return b.String()
}

// longDue is how long something is due before that is warned of: a mirror that was away is
// tried again after five minutes at most.
const longDue = 10 * time.Minute

// findings are those of doctor: none where nothing is due.
func (s dueState) findings(now time.Time) []finding {
	behind := s.Oldest != nil && now.Sub(*s.Oldest) > longDue
	detail := s.To + ": " + s.text(now)
	switch {
	case behind || s.Failure != "":
		return []finding{warnf(s.try(), "%s", detail)}
	case s.Threads > 0:
		return []finding{okf("%s", detail)}
	}
	return nil
}

// try is what sends it.
func (s dueState) try() string {
	switch {
	case s.To == dueTraces:
		return "rye-mcp help traces"
	case s.To == dueNotices:
		return "rye-mcp config edit notify"
	case s.Mirror != "":
		return "rye-mcp langgraph sync, on a machine whose user has this mirror"
	}
	return "rye-mcp langgraph sync"
}

// dueFindings are what doctor says of what is due.
func dueFindings(all []dueState, err error, now time.Time) (found []finding) {
	if err != nil {
		return []finding{warnf("", "what is due for mirrors, traces and notices: %v", err)}
	}
	for _, s := range all {
		found = append(found, s.findings(now)...)
	}
	return found
}

// dueHere is what is due of threads that are kept on this machine. Their database is not
// opened for it.
func (d *doctor) dueHere(state *projectState) []finding {
	if found, err := state.Find(); err != nil || found.Seal == nil {
		return nil // the check of the folder tells why
	}
	set, _, err := config.MirrorOf(d.config)
	all, dueErr := dueInFiles(state, err == nil && set.URL != "")
	return dueFindings(all, dueErr, d.sys.Now())
}
