package postgres_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
)

// cut says what becomes of a connection at a COMMIT.
type cut int32

const (
	passOn        cut = iota
	beforeCommit      // the server never sees it
	afterCommit       // the server has it, and its answer goes nowhere
	afterAnswered     // the server has done it, and its answer goes nowhere
)

// proxy stands between clients and a server, and cuts connections at COMMIT.
type proxy struct {
	folder   string
	server   string
	listener net.Listener
	next     atomic.Int32 // a cut, for the next COMMIT alone
	commits  atomic.Int64
	cuts     atomic.Int64
	onCut    func()
	conns    sync.WaitGroup
}

func newProxy(t *testing.T, c *pgtest.Cluster) *proxy {
	t.Helper()
	p := &proxy{folder: t.TempDir(), server: filepath.Join(c.Socket(), ".s.PGSQL.5432")}
	var err error
	if p.listener, err = net.Listen("unix", filepath.Join(p.folder, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.conns.Wait()
	})
	p.conns.Go(func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.conns.Go(func() { p.serve(client) })
		}
	})
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // it is over
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // it is over
	var mute atomic.Bool // nothing goes to the client any more
	answered := make(chan struct{})
	p.conns.Go(func() {
		_, _ = io.Copy(writer(func(b []byte) (int, error) {
			if mute.Load() {
				close(answered)
				return 0, io.EOF
			}
			return client.Write(b)
		}), server)
		_ = client.Close()
	})
	if err := p.upstream(client, server, &mute, answered); err != nil {
		return
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

var errCut = errors.New("cut")

// upstream passes messages of the client on: first one without a type, then each with a
// byte for its type and its length, see "Message Formats" in PostgreSQL's documentation.
func (p *proxy) upstream(client io.Reader, server net.Conn, mute *atomic.Bool, answered <-chan struct{}) error {
	for kind := 0; ; kind = 1 {
		head := make([]byte, kind+4)
		if _, err := io.ReadFull(client, head); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[kind:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return err
		}
		how := passOn
		if kind == 1 && head[0] == 'Q' && strings.HasPrefix(string(body), "COMMIT") {
			p.commits.Add(1)
			if how = cut(p.next.Swap(int32(passOn))); how != passOn {
				p.cuts.Add(1)
			}
		}
		if how == beforeCommit {
			return errCut
		}
		mute.Store(how != passOn)
		if _, err := server.Write(append(head, body...)); err != nil {
			return err
		}
		if how == afterAnswered {
			<-answered
		}
		if how != passOn {
			if p.onCut != nil {
				p.onCut()
			}
			return errCut
		}
	}
}
