//go:build linux || darwin

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The processes of these tests are the test binary itself, started with these
// variables: the socket to report to, and the name to report. Such a process
// does what it is told over the socket and answers every order with one line;
// it ends when the socket is closed. A test sees its death as the end of the
// connection, which the kernel closes.
const (
	placeVar  = "PROCESS_TEST_PLACE" // say which process this is, and end
	socketVar = "PROCESS_TEST_SOCKET"
	nameVar   = "PROCESS_TEST_NAME"
)

func TestMain(m *testing.M) {
	if os.Getenv(placeVar) != "" {
		os.Exit(sayPlace())
	}
	if socket := os.Getenv(socketVar); socket != "" {
		os.Exit(obey(socket, os.Getenv(nameVar)))
	}
	goleak.VerifyTestMain(m)
}

// obey is the life of a helper process.
func obey(socket, name string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 90
	}
	h := &helper{socket: socket}
	if _, err := fmt.Fprintf(conn, "%s %d\n", name, os.Getpid()); err != nil {
		return 91
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		order := strings.Fields(lines.Text())
		if order[0] == "exit" {
			code, _ := strconv.Atoi(order[1])
			return code
		}
		answer, err := h.do(order[0], order[1:])
		if err != nil {
			answer = "error: " + err.Error()
		}
		if _, err := fmt.Fprintln(conn, strings.ReplaceAll(answer, "\n", " ")); err != nil {
			return 92
		}
	}
	return 93
}

type helper struct {
	socket string
	lock   *Lock
}

func (h *helper) do(order string, args []string) (string, error) {
	switch order {
	case "ping":
		return "pong", nil
	case "inherit": // path
		lock, err := Inherit(LockFD, args[0])
		h.lock = lock
		return "ok", err
	case "lock+detach": // path, name
		lock, err := Acquire(args[0])
		if err != nil {
			return "", err
		}
		h.lock = lock
		started, err := Detach(h.spec(args[1], lock))
		if err != nil {
			return "", err
		}
		return strconv.Itoa(started.PID()), nil
	case "start": // name, and "group" or "session" for one of its own
		return "ok", h.start(args[0], args[1:])
	case "run": // name; answers at once
		go func() { _, _ = Run(context.Background(), h.command(args[0])) }()
		return "ok", nil
	case "ignore-int":
		signal.Ignore(syscall.SIGINT)
		return "ok", nil
	case "ignore":
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
		return "ok", nil
	case "say":
		_, err := fmt.Println(args[0])
		fmt.Fprintln(os.Stderr, "err:"+args[0])
		return "ok", err
	case "close-output":
		return "ok", errors.Join(os.Stdout.Close(), os.Stderr.Close())
	case "stdin":
		b, err := io.ReadAll(os.Stdin)
		return strconv.Quote(string(b)), err
	case "env":
		return strings.Join(os.Environ(), " "), nil
	case "secrets":
		secrets, err := InheritSecrets()
		all := strings.Join(secrets, " ")
		if len(all) > 1000 { // more than an answer can have
			all = fmt.Sprintf("%d bytes", len(all))
		}
		return strconv.Quote(all), err
	case "leader": // name, arguments
		pid, err := Leader([]string{nameVar + "=" + args[0], socketVar + "=" + h.socket}, args[1:])
		return strconv.Itoa(pid), err
	case "hide":
		return "ok", HideMemory()
	case "read": // file
		_, err := os.ReadFile(args[0])
		return "ok", err
	case "open": // file
		file, err := os.Open(args[0])
		if err == nil {
			err = file.Close()
		}
		return "ok", err
	case "dir":
		return os.Getwd()
	case "probe": // path, count
		return probe(args[0], atoi(args[1]))
	case "contend": // path, count
		return "ok", contend(args[0], atoi(args[1]))
	default:
		return "", fmt.Errorf("unknown order %q", order)
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func (h *helper) spec(name string, lock *Lock) Spec {
	return Spec{
		Path:    executable(),
		Env:     helperEnv(h.socket, name),
		LogPath: filepath.Join(filepath.Dir(h.socket), name+".log"),
		Lock:    lock,
	}
}

func (h *helper) command(name string) Command {
	return Command{Path: executable(), Env: helperEnv(h.socket, name)}
}

// start starts another helper the way any program starts another: it inherits
// standard output and error, and whatever else is not close-on-exec.
func (h *helper) start(name string, apart []string) error {
	cmd := exec.Command(executable())
	cmd.Env = helperEnv(h.socket, name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, what := range apart {
		cmd.SysProcAttr.Setpgid = what == "group"
		cmd.SysProcAttr.Setsid = what == "session"
	}
	return cmd.Start()
}

func executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func helperEnv(socket, name string) []string {
	return []string{
		socketVar + "=" + socket, nameVar + "=" + name,
		"GORACE=atexit_sleep_ms=0", // the race detector's default is a second
	}
}

// hub is where the helpers of one test report.
type hub struct {
	t        *testing.T
	socket   string
	listener *net.UnixListener
	waiting  map[string]*peer // connected, not asked for yet
}

// peer is one helper.
type peer struct {
	t     *testing.T
	name  string
	pid   int
	conn  net.Conn
	lines *bufio.Scanner
}

// patience is how long a test waits for what must come.
const patience = time.Minute

func newHub(t *testing.T) *hub {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // a socket's path must be short: 104 bytes on macOS
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	must(t, err)
	must(t, listener.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = listener.Close() })
	return &hub{t: t, socket: socket, listener: listener, waiting: make(map[string]*peer)}
}

func (h *hub) helper() *helper { return &helper{socket: h.socket} }

func (h *hub) path(name string) string { return filepath.Join(filepath.Dir(h.socket), name) }

// peer waits for the helper of that name.
func (h *hub) peer(name string) *peer {
	h.t.Helper()
	for h.waiting[name] == nil {
		conn, err := h.listener.Accept()
		must(h.t, err)
		h.t.Cleanup(func() { _ = conn.Close() })
		must(h.t, conn.SetDeadline(time.Now().Add(patience)))
		p := &peer{t: h.t, conn: conn, lines: bufio.NewScanner(conn)}
		if !p.lines.Scan() {
			h.t.Fatalf("a helper died before it said its name: %v", p.lines.Err())
		}
		if _, err := fmt.Sscan(p.lines.Text(), &p.name, &p.pid); err != nil {
			h.t.Fatal(err)
		}
		h.waiting[p.name] = p
	}
	return h.waiting[name]
}

func (p *peer) send(order string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.conn, order)
	must(p.t, err)
}

func (p *peer) answer() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatalf("%s is gone: %v", p.name, p.lines.Err())
	}
	return p.lines.Text()
}

// ask sends an order and returns its answer.
func (p *peer) ask(order string) string {
	p.t.Helper()
	p.send(order)
	return p.answer()
}

// want sends an order and checks its answer.
func (p *peer) want(order, answer string) {
	p.t.Helper()
	if got := p.ask(order); got != answer {
		p.t.Fatalf("%s: %s: %q, want %q", p.name, order, got, answer)
	}
}

// dies waits for the helper's end.
func (p *peer) dies() {
	p.t.Helper()
	if p.lines.Scan() {
		p.t.Fatalf("%s says %q instead of dying", p.name, p.lines.Text())
	}
	if err := p.lines.Err(); errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("%s is still alive", p.name)
	}
}

// kill kills the helper and waits for its end.
func (p *peer) kill() {
	p.t.Helper()
	must(p.t, syscall.Kill(p.pid, syscall.SIGKILL))
	p.dies()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// arrives waits for an event that must come.
func arrives(t *testing.T, what string, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
}
