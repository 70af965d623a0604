package main_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// ownNetworkVariable tells a test's process that its network is its own.
const ownNetworkVariable = "RYE_TEST_OWN_NETWORK"

// ownNetwork runs the test again in a process that has a network of its own, and reports
// whether this is that process. With its end the kernel takes away what it has made there.
func ownNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownNetworkVariable) != "" {
		return true
	}
	runtime.LockOSThread() // with whose end the process would be killed
	defer runtime.UnlockOSThread()
	attr := networkOfItsOwn(t)
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1", "-test.timeout="+timeLeft(t).String())
	again.Env = append(os.Environ(), ownNetworkVariable+"=1")
	again.SysProcAttr, again.Stdout, again.Stderr = attr, t.Output(), t.Output()
	if err := again.Run(); err != nil {
		t.Errorf("in a network of its own: %v", err)
	}
	return false
}

// timeLeft is how long a process may run that a test waits for, so that this tells what it
// waited for before the test is out of time itself; 0: for ever.
func timeLeft(t *testing.T) time.Duration {
	t.Helper()
	deadline, limited := t.Deadline()
	if !limited {
		return 0
	}
	return max(time.Until(deadline)-20*time.Second, time.Second)
}

// networkOfItsOwn are the attributes of a process with a network of its own. A user
// who is not root has it in a user namespace, under the same number: PostgreSQL does not run as root.
func networkOfItsOwn(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_PTRACE}
	}
	try := exec.Command("sh", "-c", "ip link add try0 type bridge && ip link add try1 type veth peer name try2 && "+
		"unshare --net --uts --pid --fork --mount-proc nsenter --version")
	try.SysProcAttr = attr
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: workers on machines with networks of their own. It needs iproute2, util-linux, and root or "+
			"user namespaces for everybody: %v: %s", err, out)
	}
	return attr
}

// The networks between machines, and the address of what all of them reach there: the
// database in the one, the provider of models in the other.
const (
	dataNet, databaseHost = "10.77.1.", "10.77.1.1"
	outerNet, modelHost   = "10.77.2.", "10.77.2.1"
)

// lan are machines with processes, names and networks of their own, which share a database
// and the provider of a model.
type lan struct {
	*place // the repository that each machine has a clone of

	cluster  *pgtest.Cluster
	direct   string        // the address of the database by no network
	db       *pgxpool.Pool // of the test, by that
	store    string        // the address of the database for machines
	provider string        // that of the provider of models for them
	env      []string      // of all that runs on machines
}

// newLAN has no machines yet.
func newLAN(t *testing.T, archive string) *lan {
	t.Helper()
	l := &lan{place: newPlace(t, archive)}
	l.sh("ip link set lo up")
	for _, link := range links {
		l.sh(fmt.Sprintf("ip link add %[1]s type bridge; ip addr add %[2]s1/24 dev %[1]s; ip link set %[1]s up", link.net, link.prefix))
	}
	l.provider = l.forward(l.model.url)
	_, err := sign.EnsureState(l.home(), nil)
	l.noError(err)
	l.sh("cd " + l.dir + " && git init -q && git add -A && git -c user.name=t -c user.email=t@example.org commit -qm one")

	l.cluster = pgtest.Start(t, pgtest.Options{From: dataNet + "0/24", Settings: map[string]string{
		"listen_addresses": "'" + databaseHost + "'", "max_connections": "200",
	}})
	direct := l.cluster.Database(t)
	u, err := url.Parse(direct)
	l.noError(err)
	u.Host, u.RawQuery = databaseHost, "sslmode=disable"
	l.store = u.String()
	l.direct = direct
	l.look("")
	return l
}

// look makes the test's own connections, which look into a schema.
func (l *lan) look(schema string) {
	l.Helper()
	db, err := pgxpool.New(context.Background(), l.direct+"&search_path="+schema)
	l.noError(err)
	l.Cleanup(db.Close)
	l.db = db
}

// forward makes what is served on loopback reachable for machines.
func (l *lan) forward(to string) string {
	l.Helper()
	u, err := url.Parse(to)
	l.noError(err)
	listener, err := net.Listen("tcp", modelHost+":0")
	l.noError(err)
	front := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // a machine that is gone is no news
	}}
	go func() { _ = front.Serve(listener) }()
	l.Cleanup(func() { _ = front.Close() })
	return "http://" + listener.Addr().String()
}

// sh runs a script as the network's owner.
func (l *lan) sh(script string) {
	l.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		l.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// machine is one of a lan, with a clone of the project and a home. The program of its
// place runs there.
type machine struct {
	*place

	lan  *lan
	name string
	n    int
	off  func() // as when its power fails

	worker *exec.Cmd     // that was started last
	ended  chan struct{} // is closed when that has ended
}

// newMachine makes the n-th machine, and turns it on.
func (l *lan) newMachine(n int) *machine {
	l.Helper()
	m := &machine{lan: l, name: fmt.Sprintf("m%d", n), n: n}
	env := l.machine(m.name)
	dir := filepath.Join(filepath.Dir(l.dir), m.name, "project")
	m.place = &place{TB: l.TB, dir: dir, program: filepath.Join(filepath.Dir(dir), "on"), model: l.model}
	m.env = slices.Concat(l.place.env, env, l.env, []string{"ANTHROPIC_BASE_URL=" + l.provider, storeurl.Variable + "=" + l.store})
	l.sh("git clone -q " + l.dir + " " + dir + " && git -C " + dir + " remote set-url origin https://git.example/team/app")
	trusttest.AcceptSettings(l, resolve.Roots{Project: dir, User: filepath.Dir(dir)})
	m.on()
	return m
}

// up is what the first process of a machine does: its processes end with it, and it when
// nobody holds the other end of its standard input. Every second machine is known as
// another one than this, the others as containers here.
const up = `mount --make-rprivate /
mount -t proc none /proc
hostname "$0"
[ -z "$1" ] || mount --bind "$1" /proc/sys/kernel/random/boot_id
ip link set lo up
echo up
cat >/dev/null
:`

// on turns the machine on.
func (m *machine) on() {
	m.Helper()
	boot := ""
	if m.n%2 == 1 {
		boot = filepath.Join(filepath.Dir(m.dir), "boot_id")
		m.noError(os.WriteFile(boot, fmt.Appendf(nil, "%08d-0000-4000-8000-000000000000\n", time.Now().UnixNano()%1e8), 0o600))
	}
	first := exec.Command("sh", "-ec", up, m.name, boot)
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	first.Stderr = m.Output()
	leash, err := first.StdinPipe()
	m.noError(err)
	said, err := first.StdoutPipe()
	m.noError(err)
	m.noError(first.Start())
	m.off = func() {
		_ = first.Process.Kill()
		_ = leash.Close()
		_ = first.Wait()
	}
	m.Cleanup(m.off)
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "up\n" {
		m.Fatalf("machine %s does not come up: %q, %v", m.name, line, err)
	}
	pid := first.Process.Pid
	m.noError(os.WriteFile(m.program, fmt.Appendf(nil, `#!/bin/sh
exec nsenter --target %d --net --uts --pid --mount -- sh -c 'cd "$0" && exec rye-mcp "$@"' "$PWD" "$@"
`, pid), 0o700)) //nolint:gosec // a program
	for _, link := range links {
		m.lan.sh(fmt.Sprintf(`ip link add %[1]s type veth peer name %[2]s netns %[3]d
ip link set %[1]s master %[2]s up
nsenter --target %[3]d --net ip addr add %[4]s%[5]d/24 dev %[2]s
nsenter --target %[3]d --net ip link set %[2]s up`, m.end(link), link.net, pid, link.prefix, 10+m.n))
	}
}

// link is that of every machine to a network.
type link struct{ net, prefix string }

var (
	toData  = link{"data", dataNet}
	toOuter = link{"outer", outerNet}
	links   = []link{toData, toOuter}
)

// end is the end of a link at the bridge.
func (m *machine) end(l link) string { return l.net + "-" + m.name }

// cut takes links away, as a cable that is pulled: nobody is told.
func (m *machine) cut(which ...link) (mend func()) {
	m.Helper()
	set := func(to string) {
		for _, l := range which {
			m.lan.sh("ip link set " + m.end(l) + " " + to)
		}
	}
	set("down")
	return func() { set("up") }
}

// work starts a worker, which has the name of the machine.
func (m *machine) work(slots int, env ...string) {
	m.Helper()
	log, err := os.OpenFile(m.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	m.noError(err)
	defer func() { _ = log.Close() }()
	w := exec.Command(m.program, "worker", "--project", ".", "--slots", strconv.Itoa(slots), "--name", m.name)
	w.Dir, w.Env, w.Stdout, w.Stderr = m.dir, slices.Concat(m.env, env), log, log
	m.noError(w.Start())
	m.worker, m.ended = w, make(chan struct{})
	go func(ended chan struct{}) {
		_ = w.Wait() // many are killed
		close(ended)
	}(m.ended)
}

// log is the file with what the machine's workers say.
func (m *machine) log() string { return filepath.Join(filepath.Dir(m.dir), "worker.log") }

// The processes that run on machines, by their arguments.
const (
	ofWorker = " worker --project"
	ofThread = " thread run "
)

// wrapper begins the arguments of the process that waits, from outside, for one on a machine.
// Where that one is suspended, the wrapper suspends itself.
const wrapper = "nsenter "

// processes are those on the machine that have certain arguments; of "" all.
func (m *machine) processes(of string) (pids []int) {
	m.Helper()
	all, err := processesIn(m.dir)
	m.noError(err)
	for _, process := range all {
		number, command, _ := strings.Cut(process, " ")
		if pid, err := strconv.Atoi(number); err == nil && strings.Contains(command, of) && !strings.HasPrefix(command, wrapper) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stop suspends the worker and the threads of the machine. The function it returns lets all
// there go on. A wrapper that suspended itself after that would do so for ever, so it is
// waited for; a machine does not go off before all that was started on it is waited for.
func (m *machine) stop() (resume func()) {
	m.Helper()
	stopped := m.signal(syscall.SIGSTOP, ofWorker)
	m.signal(syscall.SIGSTOP, ofThread)
	if len(stopped) > 0 {
		m.awaitSuspended(m.worker.Process.Pid)
	}
	return m.resume
}

// resume lets all processes on the machine go on.
func (m *machine) resume() {
	m.Helper()
	m.signal(syscall.SIGCONT, "")
	_ = m.worker.Process.Signal(syscall.SIGCONT)
}

// signal sends a signal to processes on the machine, and returns them.
func (m *machine) signal(s syscall.Signal, of string) []int {
	m.Helper()
	pids := m.processes(of)
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // one that has ended meanwhile needs none
	}
	return pids
}
