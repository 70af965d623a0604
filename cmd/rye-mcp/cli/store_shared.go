package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// unreachableFor is how long a server that could not be reached is not asked again: one
// call can need the store many times.
const unreachableFor = 2 * time.Second

// connections are those to the server of a site: one, made when it is first needed. It is
// safe for concurrent use.
type connections struct {
	site site
	now  func() time.Time
	most int // connections of each pool; 0: as many as a server needs

	clock  atomic.Pointer[postgres.Server] // whose time counts
	mu     sync.Mutex
	server *postgres.Server
	failed error
	until  time.Time
}

// time is what all machines of the site take for it: that of the server, or of this machine
// while the server was not heard.
func (c *connections) time() time.Time {
	if server := c.clock.Load(); server != nil {
		return server.Now()
	}
	return c.now()
}

// get connects, unless that has just failed. The error is a [*tool.Fault].
func (c *connections) get(ctx context.Context) (*postgres.Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.server != nil:
		return c.server, nil
	case c.failed != nil && c.now().Before(c.until):
		return nil, c.failed
	}
	server, err := postgres.Connect(context.WithoutCancel(ctx), postgres.Options{
		URL: c.site.url.Secret(), Connections: c.most, Application: fmt.Sprintf("rye-mcp %d", os.Getpid()),
	})
	if err != nil {
		c.failed, c.until = c.site.fault(err), c.now().Add(unreachableFor)
		return nil, c.failed
	}
	c.server = server
	c.clock.Store(server)
	return server, nil
}

func (c *connections) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	err := c.server.Close()
	c.server = nil
	return err
}

// fault tells what is wrong with the server of a site to people and to models.
func (s site) fault(err error) error {
	if err == nil {
		return nil
	}
	f := tool.Faultf(tool.CodeStore, "the thread store %s: %w", s.url, maskedError{err, s.url})
	if told, is := errors.AsType[interface {
		error
		Try() string
	}](err); is {
		f = f.WithTry("%s", told.Try())
	}
	if errors.Is(err, postgres.ErrUnreachable) && !s.fallback {
		f = f.WithTry("%s; threads of this machine alone: --%s %s", f.Try, storeFlag, storeurl.Local)
	}
	return f.WithHint("Threads can neither be started nor looked at before that is mended. Tell the person; items can be used meanwhile.")
}

// maskedError is an error of the client of a database, which can quote the address.
type maskedError struct {
	error

	url storeurl.URL
}

func (e maskedError) Error() string { return e.url.Masked(e.error.Error()) }

func (e maskedError) Unwrap() error { return e.error }

// sharedStore is the store of a project whose threads other machines have, too. It is made
// with the first thread.
func (p *project) sharedStore(sys System, log zerolog.Logger) *late.Store {
	opened := func(ctx context.Context, server *postgres.Server, st *postgres.Store, err error) (store.Store, error) {
		if err != nil || st == nil {
			return nil, p.state.site.fault(err)
		}
		if err := p.sameSigner(ctx, server); err != nil {
			return nil, errors.Join(err, st.Close())
		}
		p.rows.Store(st)
		rows := relocate.Rows(st)
		p.flows.Store(&rows)
		return p.withNotices(sys, p.withDaily(sys, sys.around(st), log), log), nil //nolint:contextcheck // a sender outlives every call
	}
	find := func(ctx context.Context) (store.Store, error) {
		if _, err := p.state.Find(); err != nil {
			return nil, err
		}
		server, err := p.server.get(ctx)
		if err != nil {
			return nil, err
		}
		st, err := server.Find(ctx, p.state.site.project)
		return opened(ctx, server, st, err)
	}
	create := func(ctx context.Context) (store.Store, error) {
		if _, err := p.state.Make(); err != nil {
			return nil, err
		}
		server, err := p.server.get(ctx)
		if err != nil {
			return nil, err
		}
		st, err := server.Project(ctx, p.state.site.project)
		return opened(ctx, server, st, err)
	}
	return late.New(find, create)
}

// around is the store as the system wants it.
func (s System) around(st store.Store) store.Store {
	if s.Around == nil {
		return st
	}
	return s.Around(st)
}

// sameSigner refuses a project whose threads another key signs than this machine has:
// neither could the threads of one run on the other, nor would they verify.
func (p *project) sameSigner(ctx context.Context, server *postgres.Server) error {
	own := p.state.Home().Seal.Fingerprint()
	signer, err := server.Signer(ctx, p.state.site.project, own)
	if err != nil || signer == own {
		return p.state.site.fault(err)
	}
	return tool.Faultf(tool.CodeStore, "what the threads of %s leave is signed by key %s, and this machine has %s", p.state.site.project, signer, own).
		WithHint("Tell the person: each machine of a fleet needs the same key.").
		WithTry("put the file of that key on this machine, and rye-mcp config set --user store store.key FILE; rye-mcp help postgres")
}

// fallBack keeps the threads of this process on this machine where the user allows that and
// the server cannot be reached. It stays so until the process ends: a thread that it has
// started must be found by it.
func (s *projectState) fallBack(ctx context.Context, c *connections) (warning string) {
	if !s.site.shared() || !s.site.fallback {
		return ""
	}
	_, err := c.get(ctx)
	if !errors.Is(err, postgres.ErrUnreachable) {
		return "" // the first use of the store reports it
	}
	warning = fmt.Sprintf("%v; threads are started and looked for on this machine alone, as long as this process runs (store.fallback)", err)
	s.fellBack, s.site = s.site, site{}
	return warning
}
