package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/orchestrator/mirror"
	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/mirrors"
)

const (
	// noteWithin bounds what a change of a thread waits for its mirror.
	noteWithin = 5 * time.Second
	// lookForCopies is how often a process that stays looks whether copies are due of threads
	// that other machines have changed.
	lookForCopies = time.Minute
)

// outbox has which copies are due: in files beside the threads, or where the threads are.
func (m *mirroring) outbox() mirror.Outbox {
	if m.state.site.shared() {
		return m.sharedOutbox()
	}
	return mirror.Notes{Notes: due.Notes{Dir: m.state.Home().Mirror()}, Now: m.sys.Now}
}

func (m *mirroring) sharedOutbox() *mirrors.Outbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shared == nil {
		address := m.url
		if at, err := langgraph.ParsePlace(address); err == nil { // one that is written in two ways is one
			address = at.String()
		}
		m.shared = &mirrors.Outbox{Mirror: mirrors.ID(address), Sender: m.machine(), Pool: func() *pgxpool.Pool {
			if at := m.rows.Load(); at != nil {
				return at.Pool()
			}
			return nil
		}}
	}
	return m.shared
}

// machine names this machine, with a hash of which and whose it is: of its processes one
// sends at a time anyway.
func (m *mirroring) machine() string {
	self := m.place.Self()
	return self.Host + " " + mirrors.ID(strings.Join([]string{self.Host, self.Boot, self.PIDNamespace, m.state.Home().Dir}, "\x00"))
}

// join makes known, where the threads are, that this machine has its mirror.
func (m *mirroring) join(ctx context.Context) error {
	out := m.sharedOutbox()
	m.mu.Lock()
	joined := m.joined || m.rows.Load() == nil
	m.mu.Unlock()
	if joined {
		return nil
	}
	if err := out.Join(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined = m.shared == out
	return nil
}

// ofWorker reports whether this process is a worker, or runs a thread for one: the worker
// that River chooses then sends what is due.
func (m *mirroring) ofWorker() bool {
	return m.sys.worker != nil || m.guest != nil && m.guest.Under != ""
}

// calledThere is what the project is called on the mirror: the same from each machine.
func (m *mirroring) calledThere() string {
	if m.state.site.shared() {
		return m.state.site.project
	}
	return filepath.Base(m.path)
}

// takeTurn takes the right to send, which one process of this machine has, and one machine.
func (m *mirroring) takeTurn(ctx context.Context) (life.Hold, error) {
	hold, err := m.life.Lease(mirrorCommand)
	if err != nil || !m.state.site.shared() {
		return hold, err
	}
	out := m.sharedOutbox()
	var mine bool
	if err = m.join(ctx); err == nil {
		mine, err = out.Begin(ctx)
	}
	if err == nil && !mine {
		err = fmt.Errorf("another machine sends: %w", life.ErrHeld)
	}
	if err != nil {
		return nil, errors.Join(err, hold.Release())
	}
	return &turn{hold, func() error { return out.End(context.WithoutCancel(ctx)) }}, nil
}

// turn is the right to send of a machine, with that of a process of it.
type turn struct {
	life.Hold

	end func() error
}

// Release implements [life.Hold].
func (t *turn) Release() error { return errors.Join(t.end(), t.Hold.Release()) }

// send sends what is due, and sweeps where that is due of a mirror that several machines
// have. Where others send it does nothing.
func (m *mirroring) send(ctx context.Context, s *mirror.Sender) error {
	if _, err := s.Run(ctx); err != nil {
		return unlessHeld(err)
	}
	if !m.state.site.shared() {
		return nil
	}
	due, err := m.sharedOutbox().BeginSweep(ctx, m.control.Tidy.Interval())
	if err != nil || !due {
		return err
	}
	did, err := s.Sweep(ctx, s.Outbox.Note, m.sys.Now())
	if did != "" {
		m.log.Info().Msg("mirror: " + did)
	}
	if err != nil || did == "" {
		return err
	}
	_, err = s.Run(ctx)
	return unlessHeld(err)
}

func unlessHeld(err error) error {
	if errors.Is(err, life.ErrHeld) {
		return nil
	}
	return err
}

// sendHere sends what is due from this process, which is a worker.
func (m *mirroring) sendHere(ctx context.Context) error {
	if !m.on() || !m.mirrorRest().Over(m.sys.Now()) {
		return nil
	}
	there, err := m.mirrorOf(m.sys, m.log)
	if err != nil {
		return err
	}
	defer there.Client.Close()
	return m.send(ctx, m.senderTo(there))
}

// mirrorServed is the id of the mirror that a worker serves; empty: it has none.
func (m *mirroring) mirrorServed(ctx context.Context) (id string, err error) {
	if !m.on() || !m.state.site.shared() {
		return "", nil
	}
	return m.sharedOutbox().Mirror, m.join(ctx)
}

// sendLeftBehind starts a sender at the end of a command, when other machines have changed
// threads meanwhile, as one that the command has waited for.
func (m *mirroring) sendLeftBehind(ctx context.Context) {
	if !m.state.site.shared() || m.rows.Load() == nil {
		return
	}
	if err := m.sendLeftCopies(context.WithoutCancel(ctx)); err != nil {
		m.log.Warn().Err(err).Msg("mirror: copies that are due")
	}
}

// keepSending starts senders of what other machines have changed, as long as a server has
// the project open.
func (m *mirroring) keepSending(ctx context.Context) {
	if !m.state.site.shared() {
		return // the process that changes a thread starts one
	}
	for sweep := m.sys.Now(); ; {
		if err := wait(ctx, lookForCopies); err != nil {
			return
		}
		err := m.sendLeftCopies(ctx)
		if now := m.sys.Now(); err == nil && m.on() && now.Sub(sweep) > m.control.Tidy.Interval() {
			sweep, err = now, m.startMirrorSender() //nolint:contextcheck // it outlives the server
		}
		if err != nil && ctx.Err() == nil {
			m.log.Warn().Err(err).Msg("mirror: copies that are due")
		}
	}
}
