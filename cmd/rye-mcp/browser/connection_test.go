package browser_test

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/go-rod/rod/lib/proto"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestStreamCut: a page whose connection is cut says so, and shows what has happened
// meanwhile when it has one again.
func TestStreamCut(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	between := newProxy(t, s.origin)
	direct := s.origin
	s.origin = between.origin
	b := s.open(desktop)
	b.allow(`Failed to load resource|net::ERR_|ERR_INCOMPLETE_CHUNKED`)
	s.startAt(direct, "one")
	b.find("treeitem", "^Number one")
	between.cut(true)
	b.says("Connection lost\\. ")
	id := s.startAt(direct, "two")
	b.find("button", "^Try now$")
	between.cut(false)
	// The page tries by itself, too, and has no such button then.
	b.eval(nil, `() => document.querySelector(".banner:not([hidden]) button")?.click()`)
	b.find("treeitem", "^Number two")
	b.gone("alert", ".")
	b.press("treeitem", "^Number two")
	b.press("button", "^Cancel$")
	b.press("button", "^Cancel 1 thread$")
	p.untilIs(id, thread.Cancelled)
	between.cut(true)
	between.cut(false)
	p.model.release()
	b.find("treeitem", "^Number one.* completed ") // by itself
}

// startAt starts a thread at another address of the server.
func (s *server) startAt(origin, n string) thread.ID {
	s.p.Helper()
	at := *s
	at.origin = origin
	return at.start("hold", map[string]any{"n": n})
}

// proxy stands between a page and its server, and can be cut.
type proxy struct {
	origin string

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
}

func newProxy(t testing.TB, origin string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	behind := strings.TrimPrefix(origin, "http://")
	p := &proxy{origin: (&url.URL{Scheme: "http", Host: listener.Addr().String()}).String(), open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.pass(conn, behind) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut(true)
		all.Wait()
	})
	return p
}

// pass hands on what both sides say until one of them ends.
func (p *proxy) pass(conn net.Conn, behind string) {
	defer func() { _ = conn.Close() }()
	to, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if !p.keep(conn) {
		return
	}
	defer p.forget(conn)
	go func() {
		_, _ = io.Copy(to, conn)
		_ = to.Close()
	}()
	_, _ = io.Copy(conn, to)
}

func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[conn] = true
	return !p.closed
}

func (p *proxy) forget(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

// cut breaks all connections off, and lets none through, or some again.
func (p *proxy) cut(closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = closed
	for conn := range p.open {
		_ = conn.Close()
	}
}

// TestServerRestarted: a page whose server was ended says so. A new server at its address has another token,
// and the page says that too; the new address, opened in the same tab, goes on.
func TestServerRestarted(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := s.open(desktop)
	b.allow(`Failed to load resource|net::ERR_|401`)
	s.start("hold", map[string]any{"n": "one"})
	b.find("treeitem", "^Number one")
	s.kill()
	b.says("Connection lost\\. ")
	again := p.serveAt(strings.TrimPrefix(s.origin, "http://"))
	b.says("not valid any more")
	loaded := b.page.WaitNavigation(proto.PageLifecycleEventNameLoad) // the page loads itself anew for another token
	b.noError(b.page.Navigate(again.address()))
	loaded()
	b.gone("any", "not valid any more")
	b.find("treeitem", "^Number one")
	p.model.release()
	b.find("treeitem", "^Number one.* completed ")
}

// TestClock: the clock of the browser is an hour ahead of the server's. Ages and deadlines are the server's.
func TestClock(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := newTab(t, chromium.inContext(t), s.origin, desktop)
	_, err := b.page.EvalOnNewDocument(`(() => {
		const real = Date, ahead = 3600e3;
		globalThis.Date = class extends real {
			constructor(...given) { given.length ? super(...given) : super(real.now() + ahead); }
			static now() { return real.now() + ahead; }
		};
	})()`)
	b.noError(err)
	b.noError(b.page.Navigate(s.address()))
	id := s.start("ask", map[string]any{"n": "time"})
	b.says("[45]\\s?min.* left, then: stop")
	b.press("button", "^Stop$")
	p.untilIs(id, thread.Error)
	b.openRow("^Go on about time")
	b.says("failed (just now|\\d+\\s?s(ec\\w*)? ago|now)")
}
