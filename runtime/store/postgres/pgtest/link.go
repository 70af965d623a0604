package pgtest

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Link is a way to a server that can be cut: who has its URL reaches the server through a
// socket of its own.
type Link struct {
	server   string
	listener net.Listener

	mu    sync.Mutex
	cut   bool
	slow  time.Duration
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

// NewLink makes a link to the server of a URL that [Server] or [Cluster.Database] has given,
// and returns the URL through it.
func NewLink(t testing.TB, url string) (link *Link, through string) {
	t.Helper()
	before, folder, found := strings.Cut(url, "host=")
	if folder = strings.ReplaceAll(folder, "%2F", "/"); !found {
		t.Fatalf("%s is no URL of a cluster", url)
	}
	own, err := os.MkdirTemp(shortTemp(), "rye-link-") //nolint:usetesting // its name is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{server: filepath.Join(folder, socketName), conns: map[net.Conn]bool{}}
	if l.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(own, socketName)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.Cut()
		l.all.Wait()
		_ = os.RemoveAll(own)
	})
	l.all.Go(l.serve)
	return l, before + "host=" + strings.ReplaceAll(own, "/", "%2F")
}

// socketName is what PostgreSQL calls its socket.
const socketName = ".s.PGSQL.5432"

// Cut breaks all connections, and every one that is made from now on.
func (l *Link) Cut() { l.set(true) }

// Slow lets each piece of what clients send wait for a time; 0: none waits any more.
func (l *Link) Slow(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = by
}

// Mend lets connections through again.
func (l *Link) Mend() { l.set(false) }

func (l *Link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut = cut; !cut {
		return
	}
	for c := range l.conns {
		_ = c.Close()
	}
}

func (l *Link) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.all.Go(func() { l.pass(client) })
	}
}

// pass connects a client with the server until one of them, or a cut, ends that.
func (l *Link) pass(client net.Conn) {
	defer client.Close() //nolint:errcheck // it is over
	if !l.add(client) {
		return
	}
	defer l.drop(client)
	server, err := (&net.Dialer{}).DialContext(context.Background(), "unix", l.server)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // it is over
	l.all.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(delayed{server, l}, client)
}

// delayed is a server behind a slow link.
type delayed struct {
	io.Writer
	link *Link
}

// Write implements [io.Writer].
func (d delayed) Write(p []byte) (int, error) {
	d.link.mu.Lock()
	slow := d.link.slow
	d.link.mu.Unlock()
	<-time.After(slow) // which is the fault
	return d.Writer.Write(p)
}

func (l *Link) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cut {
		l.conns[c] = true
	}
	return !l.cut
}

func (l *Link) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
