package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options of a cluster.
type Options struct {
	// Durable writes what was committed to the disk before it is told. Without it a
	// cluster survives that its processes are killed, and not that the machine stops; it
	// lies in memory where there is room.
	Durable bool
	// Settings stand in postgresql.conf as they are here, behind those of every cluster.
	Settings map[string]string
	// From are the addresses, as 10.0.0.0/24, from which everybody is let in without a
	// password, where Settings have the server listen; empty: nobody is.
	From string
	// Passwords asks every role but the owner for one.
	Passwords bool
	// Network makes it listen on the loopback; nil: on its socket alone.
	Network *Network
}

// Cluster is a PostgreSQL server with its databases.
type Cluster struct {
	folder string // with the socket, data and log
	attr   *syscall.SysProcAttr
	uid    int
	gid    int
	bin    func(testing.TB, string) string

	mu         sync.Mutex
	postmaster *exec.Cmd // nil while it does not run
	watchdog   *exec.Cmd
	leash      io.WriteCloser
	databases  atomic.Int64

	port         int // 0: the usual one, of the socket alone
	certificates atomic.Int64
}

// owner is the superuser of each cluster.
const owner = "rye"

// startWait is how long a server may take to start or to stop on a busy machine.
const startWait = 60 * time.Second

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Server returns the URL of a new, empty database of the cluster that the tests of this
// process share.
func Server(t testing.TB) string {
	t.Helper()
	return Shared(t).Database(t)
}

// Shared returns the cluster that the tests of this process share. It runs until the
// process ends; a test does not stop or suspend it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	program(t, "initdb")
	shared.once.Do(func() { shared.cluster, shared.err = create(t, Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Start makes a cluster that is the test's alone, and runs until its end.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	program(t, "initdb")
	c, err := create(t, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.remove(); err != nil {
			t.Errorf("remove the cluster: %v", err)
		}
	})
	return c
}

// create makes and starts a cluster. After a failure the end of the test's process removes
// what was made.
func create(t testing.TB, o Options) (*Cluster, error) {
	c, err := newCluster(o.Durable)
	if err != nil {
		return nil, err
	}
	if err := c.fill(t); err != nil {
		return nil, err
	}
	if err := c.configure(t, o); err != nil {
		return nil, err
	}
	return c, c.up(t)
}

// newCluster makes the folder of a cluster and the process that will remove it.
func newCluster(durable bool) (*Cluster, error) {
	attr, uid, gid, err := unprivileged()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(place(durable), "rye-pg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{folder: folder, attr: attr, uid: uid, gid: gid, bin: program}
	if err := errors.Join(os.Chmod(folder, 0o700), c.own(folder)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return c, c.watch()
}

// place is the folder for that of a cluster: in memory where nothing has to be durable,
// because a database is hundreds of small files, and most of what tests ask of a server on
// a disk is to make and remove them.
func place(durable bool) string {
	if !durable && roomInMemory() {
		return memory
	}
	return shortTemp()
}

// shortTemp is a folder for temporary ones whose name leaves room for that of a socket,
// which may have about 100 bytes in all.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) <= 40 {
		return dir
	}
	return "/tmp"
}

func (c *Cluster) own(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, c.uid, c.gid)
}

// tidyUp waits until nobody holds the other end of its standard input, and then stops
// the server of the folder $0 and removes it.
const tidyUp = `cat >/dev/null
while [ -d "$0" ]; do
	pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null)
	[ -z "$pid" ] || { kill -CONT "$pid" && kill -QUIT "$pid"; } 2>/dev/null
	tries=0
	while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do tries=$((tries+1)); sleep 0.1; done
	rm -rf "$0" 2>/dev/null
done`

// watch starts the watchdog.
func (c *Cluster) watch() error {
	c.watchdog = exec.CommandContext(context.Background(), "/bin/sh", "-c", tidyUp, c.folder)
	c.watchdog.SysProcAttr, c.watchdog.Dir = c.attr, "/"
	var err error
	if c.leash, err = c.watchdog.StdinPipe(); err != nil {
		return err
	}
	return c.watchdog.Start()
}

func (c *Cluster) data() string { return filepath.Join(c.folder, "data") }

// Log is the file with what the server has said.
func (c *Cluster) Log() string { return filepath.Join(c.folder, "log") }

// Socket is the folder of the server's socket.
func (c *Cluster) Socket() string { return c.folder }

// Program returns a command of one of PostgreSQL's programs that may use the cluster's files.
func (c *Cluster) Program(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	return c.command(t, name, args...)
}

func (c *Cluster) command(t testing.TB, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), c.bin(t, name), args...)
	cmd.SysProcAttr, cmd.Dir = c.attr, "/"
	return cmd
}

// always stands in every postgresql.conf: small, and no work that no test asks for.
const always = `
listen_addresses = ''
unix_socket_directories = '%s'
max_connections = 100
shared_buffers = 16MB
huge_pages = off
dynamic_shared_memory_type = mmap
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
log_min_messages = warning
`

const notDurable = `
fsync = off
full_page_writes = off
wal_init_zero = off
`

func (c *Cluster) configure(t testing.TB, o Options) error {
	t.Helper()
	var conf strings.Builder
	fmt.Fprintf(&conf, always, c.folder)
	if o.Network != nil {
		lines, err := c.listen(t, *o.Network)
		if err != nil {
			return err
		}
		conf.WriteString(lines)
	}
	if !o.Durable {
		conf.WriteString(notDurable)
	}
	for name, value := range o.Settings {
		fmt.Fprintf(&conf, "%s = %s\n", name, value)
	}
	file, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(conf.String())
	if err = errors.Join(err, file.Close()); err != nil || !o.Passwords && o.From == "" {
		return err
	}
	everything := strings.Repeat("all\t", 2) // databases and roles
	rules := "local all " + owner + " trust\n"
	others := "trust"
	if o.Passwords {
		others = "scram-sha-256"
	}
	rules += "local\t" + everything + others + "\n"
	if o.From != "" {
		rules += "host\t" + everything + o.From + "\ttrust\n"
	}
	return os.WriteFile(filepath.Join(c.data(), "pg_hba.conf"), []byte(rules), 0o600)
}

// Database makes a new, empty database and returns its URL. It is dropped at the end of
// the test.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("t%d", c.databases.Add(1))
	c.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if c.Running() {
			c.Exec(t, "DROP DATABASE "+name+" WITH (FORCE)")
		}
	})
	return c.URL(owner, name)
}

// URL of a database of the cluster for a user, who may be "name:password".
func (c *Cluster) URL(user, database string) string {
	name, password, has := strings.Cut(user, ":")
	at := url.Values{"host": {c.folder}}
	if c.port != 0 {
		at.Set("port", c.Port())
	}
	u := url.URL{Scheme: "postgres", User: url.User(name), Path: "/" + database, RawQuery: at.Encode()}
	if has {
		u.User = url.UserPassword(name, password)
	}
	return u.String()
}

// Exec runs statements as the owner in the database postgres.
func (c *Cluster) Exec(t testing.TB, statements ...string) {
	t.Helper()
	if err := c.exec(statements...); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) exec(statements ...string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL(owner, "postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
