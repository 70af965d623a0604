package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/ahead"
	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/link"
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
	// alone is for the process of a thread, which works by one connection.
	alone bool
	// moving is for who moves threads there.
	moving bool
	// migrations are those of the system; nil: of the program.
	migrations fs.FS

	clock  atomic.Pointer[postgres.Server] // whose time counts
	mu     sync.Mutex
	begun  *link.Link      // of the process of a thread; nil: none
	early  *postgres.Store // what openEarly has found and nobody has asked for
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
	server, err := postgres.Connect(context.WithoutCancel(ctx), c.options())
	if err != nil {
		return nil, c.fail(err)
	}
	c.server = server
	c.clock.Store(server)
	return server, nil
}

// project opens the store of the project of the site, with one connection where all is
// there. It is nil where there is none, unless it is to be made.
func (c *connections) project(ctx context.Context, create bool) (*postgres.Store, error) {
	if st, err := c.lookup(ctx); st != nil || err != nil {
		return st, err
	}
	server, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	open := server.Find
	if create {
		open = server.Project
	}
	st, err := open(ctx, c.site.project)
	return st, c.site.fault(err)
}

// lookup connects to where the project is; the store is nil where it is not, or where
// somebody has connected.
func (c *connections) lookup(ctx context.Context) (*postgres.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st := c.early; st != nil {
		c.early = nil
		return st, nil
	}
	if c.server != nil || c.failed != nil {
		return nil, nil //nolint:nilnil // as it says
	}
	return c.find(ctx)
}

// find connects to where the project is; the store is nil where it is not.
func (c *connections) find(ctx context.Context) (*postgres.Store, error) {
	server, st, err := postgres.Lookup(context.WithoutCancel(ctx), c.options(), c.site.project)
	if err != nil {
		return nil, c.fail(err)
	}
	if st != nil {
		c.server = server
		c.clock.Store(server)
	}
	return st, nil
}

// openEarly opens the store beside what a thread's process does before it needs that, by the
// connection that the process has begun before all else. A failure is found when the store is needed.
func (c *connections) openEarly(ctx context.Context) {
	c.mu.Lock() // callers that need the store wait
	ahead.Beside(func() {
		defer c.mu.Unlock()
		c.begun = ahead.Take()
		defer c.begun.Close()
		c.early, _ = c.find(ctx)
	})
}

func (c *connections) options() postgres.Options {
	o := postgres.Options{URL: c.site.url.Secret(), Connections: c.most, Application: ahead.Application()}
	if c.alone {
		o = ahead.Options(c.site.url)
	}
	o.Migrations, o.Begun, o.Moving = c.migrations, c.begun, c.moving
	return o
}

// fail remembers why there is no connection.
func (c *connections) fail(err error) error {
	c.failed, c.until = c.site.fault(err), c.now().Add(unreachableFor)
	return c.failed
}

func (c *connections) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	var err error
	if c.early != nil {
		err = c.early.Close()
	}
	err = errors.Join(err, c.server.Close())
	c.early, c.server = nil, nil
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
	opened := func(ctx context.Context, create bool) (store.Store, error) {
		st, err := p.server.project(ctx, create)
		if err != nil || st == nil {
			return nil, err
		}
		if err := p.sameSigner(ctx, st); err != nil {
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
		return opened(ctx, false)
	}
	create := func(ctx context.Context) (store.Store, error) {
		if _, err := p.state.Make(); err != nil {
			return nil, err
		}
		return opened(ctx, true)
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
func (p *project) sameSigner(ctx context.Context, st *postgres.Store) error {
	own := p.state.Home().Seal.Fingerprint()
	signer, err := st.Signer(ctx, own)
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
