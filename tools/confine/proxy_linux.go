package confine

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/tools/confine/inside"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// handOverTimeout bounds how long a new process may take until it hands its listener
// over.
const handOverTimeout = 10 * time.Second

// serveProxy gives a command that has no network a way to the declared hosts: the new
// process listens on the loopback of its own network and hands the listener over; what
// comes there is answered here, where the network is.
func serveProxy(n Network, command *process.Command) error {
	if len(command.Files) != inside.ListenerFD-3 {
		return errors.New("bug; the command has files of its own")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, childs := os.NewFile(uintptr(pair[0]), "listener"), os.NewFile(uintptr(pair[1]), "listener") //nolint:gosec // descriptors
	command.Files = append(command.Files, childs)
	p := &proxy{network: n, dialer: &net.Dialer{Timeout: 30 * time.Second}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() {
		defer func() { _ = ours.Close() }()
		listener, err := receive(ours)
		if err != nil {
			return // the process has said why it ended
		}
		_ = p.server.Serve(listener) // until it is closed
	})
	before := command.After
	command.After = func() {
		_ = ours.SetDeadline(time.Now())
		p.end()
		serving.Wait()
		if before != nil {
			before()
		}
	}
	return nil
}

// receive takes the listener of a new process.
func receive(from *os.File) (net.Listener, error) {
	conn, err := net.FileConn(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("bug; a %T", conn)
	}
	if err := socket.SetReadDeadline(time.Now().Add(handOverTimeout)); err != nil {
		return nil, err
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := socket.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("no listener came: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("no listener came: %w", err)
	}
	file := os.NewFile(uintptr(fds[0]), "listener") //nolint:gosec // a descriptor
	defer func() { _ = file.Close() }()
	return net.FileListener(file)
}

// proxy takes requests to the declared hosts on, and tunnels to them.
type proxy struct {
	network Network
	dialer  *net.Dialer
	server  *http.Server

	mu      sync.Mutex
	tunnels map[net.Conn]bool
	ended   bool
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port := r.URL.Hostname(), r.URL.Port()
	if r.Method == http.MethodConnect {
		var err error
		if host, port, err = net.SplitHostPort(r.Host); err != nil {
			http.Error(w, "the host to connect to is not HOST:PORT", http.StatusBadRequest)
			return
		}
	} else if port == "" {
		port = "80"
		if r.URL.Scheme == "https" {
			port = "443"
		}
	}
	credential, has := p.network.credential(host, port)
	switch {
	case !r.URL.IsAbs() && r.Method != http.MethodConnect:
		http.Error(w, "this is a proxy: requests name their host", http.StatusBadRequest)
	case has && r.Method != http.MethodConnect:
		p.pass(w, r, credential)
	case !p.network.allows(host, port):
		http.Error(w, fmt.Sprintf("the tool does not declare the host %s:%s in network", host, port), http.StatusForbidden)
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	default:
		p.pass(w, r, Credential{})
	}
}

// pass takes a request on, with a credential where there is one.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request, c Credential) {
	onward := httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: p.dialer.DialContext, DisableKeepAlives: true},
		Rewrite: func(request *httputil.ProxyRequest) {
			if c.URL == "" {
				return
			}
			request.Out.Header.Set(c.Header, c.Value)
			if to, err := url.Parse(c.URL); err == nil {
				request.Out.URL.Scheme, request.Out.URL.Host, request.Out.Host = to.Scheme, to.Host, to.Host
			}
		},
		ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "the host cannot be reached", http.StatusBadGateway)
		},
	}
	onward.ServeHTTP(w, r)
}

// tunnel passes bytes both ways until one side ends.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := p.dialer.DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, "the host cannot be reached", http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "no tunnel here", http.StatusInternalServerError)
		return
	}
	here, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	if !p.hold(here, there) {
		return
	}
	defer p.release(here, there)
	if _, err := here.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	passBoth(here, buffered, there)
}

func (p *proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	if p.tunnels == nil {
		p.tunnels = make(map[net.Conn]bool)
	}
	for _, c := range conns {
		p.tunnels[c] = true
	}
	return true
}

func (p *proxy) release(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.tunnels, c)
	}
}

// end closes what is open: the command that it was for has ended.
func (p *proxy) end() {
	_ = p.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for c := range p.tunnels {
		_ = c.Close()
	}
}

// passBoth copies between two ends until both have said all, or one is closed.
func passBoth(here net.Conn, from io.Reader, there net.Conn) {
	var passing sync.WaitGroup
	passing.Go(func() {
		_, _ = io.Copy(there, from)
		closeWrite(there)
	})
	_, _ = io.Copy(here, there)
	closeWrite(here)
	passing.Wait()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
