package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Up starts a server that was stopped, and waits until it answers.
func (c *Cluster) Up(t testing.TB) {
	t.Helper()
	if err := c.up(t); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) up(t testing.TB) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.postmaster != nil {
		return errors.New("the server runs already")
	}
	log, err := os.OpenFile(c.Log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the server has its own
	cmd := c.command(t, "postgres", "-D", c.data())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	c.postmaster = cmd
	return c.answers()
}

// answers waits until the server answers.
func (c *Cluster) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.URL(owner, "postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(c.Log())
			return fmt.Errorf("the server does not answer: %w\n%s", err, said)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop ends the server; its clients are disconnected, what they were about is rolled back.
func (c *Cluster) Stop(t testing.TB) { t.Helper(); c.down(t, sigFast) }

// Kill ends the server as a crash does: when it starts again it recovers from its log.
func (c *Cluster) Kill(t testing.TB) { t.Helper(); c.down(t, sigImmediate) }

// Restart stops and starts the server.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	c.Stop(t)
	c.Up(t)
}

func (c *Cluster) down(t testing.TB, how syscall.Signal) {
	t.Helper()
	if err := c.end(how); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) end(how syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.postmaster == nil {
		return nil
	}
	if err := signal(c.postmaster.Process.Pid, how); err != nil {
		return err
	}
	_ = c.postmaster.Wait() // its status says how it was told to end
	c.postmaster = nil
	return nil
}

// Running reports whether the server was started and not stopped.
func (c *Cluster) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.postmaster != nil
}

// Suspend stops all processes of the server as SIGSTOP does: connections stand, and
// nothing answers. The returned function lets them go on, once; the end of the test does
// it too.
func (c *Cluster) Suspend(t testing.TB) (resume func()) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	// The postmaster first, so that it starts no others.
	pids := []int{c.postmaster.Process.Pid}
	if err := signal(pids[0], sigStop); err != nil {
		t.Fatal(err)
	}
	children, err := childrenOf(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		_ = signal(pid, sigStop) // one that has ended meanwhile is as still
	}
	pids = append(children, pids...)
	done := false
	resume = func() {
		if done {
			return
		}
		done = true
		for _, pid := range pids {
			_ = signal(pid, sigContinue)
		}
	}
	t.Cleanup(resume)
	return resume
}

// childrenOf returns the processes whose parent is pid, from /proc.
func childrenOf(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, errors.Join(err, errors.New("the processes of the server cannot be found without /proc"))
	}
	var children []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state ppid …", and a name may have spaces and parentheses.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, nil
}

// ReadOnly makes the server refuse to write, or to write again, with the code that a
// standby refuses with.
func (c *Cluster) ReadOnly(t testing.TB, on bool) {
	t.Helper()
	c.Set(t, "default_transaction_read_only", strconv.FormatBool(on))
}

// Set changes a setting of the running server, for all connections, those that stand too.
func (c *Cluster) Set(t testing.TB, name, value string) {
	t.Helper()
	c.Exec(t, "SET default_transaction_read_only = off", "ALTER SYSTEM SET "+name+" = '"+value+"'", "SELECT pg_reload_conf()")
	c.reloaded(t, name, value)
}

// reloaded waits until new connections have a value.
func (c *Cluster) reloaded(t testing.TB, name, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.URL(owner, "postgres"))
		if err != nil {
			t.Fatal(err)
		}
		var same bool
		err = conn.QueryRow(ctx, "SELECT setting = $2 OR (setting = 'on') = ($2 = 'true') AND vartype = 'bool' FROM pg_settings WHERE name = $1", name, value).Scan(&same)
		if err = errors.Join(err, conn.Close(ctx)); err != nil {
			t.Fatal(err)
		}
		if same {
			return
		}
	}
}

// remove stops the server and removes the cluster.
func (c *Cluster) remove() error {
	err := c.end(sigImmediate)
	return errors.Join(err, c.leash.Close(), c.watchdog.Wait())
}

// Standby makes another server that follows this one, asynchronously, and only reads.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	s, err := newCluster(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Errorf("remove the standby: %v", err)
		}
	})
	backup := s.command(t, "pg_basebackup", "-h", c.folder, "-p", c.Port(), "-U", owner, "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if c.port != 0 {
		if s.port, err = freePort(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = fmt.Fprintf(conf, "unix_socket_directories = '%s'\nport = %s\n", s.folder, s.Port())
	if err := errors.Join(err, conf.Close(), s.up(t)); err != nil {
		t.Fatal(err)
	}
	return s
}

// CaughtUp waits until a standby has what this server has.
func (c *Cluster) CaughtUp(t testing.TB, standby *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	var at string
	ask(ctx, t, c, &at, "SELECT pg_current_wal_insert_lsn()::text")
	for behind := true; behind; {
		ask(ctx, t, standby, &behind, "SELECT pg_last_wal_replay_lsn() < '"+at+"'")
	}
}

// Detach ends that a standby follows: what is committed from here on it does not get.
func (c *Cluster) Detach(t testing.TB) {
	t.Helper()
	c.Set(t, "primary_conninfo", "")
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	for follows := true; follows; {
		ask(ctx, t, c, &follows, "SELECT count(*) > 0 FROM pg_stat_wal_receiver")
	}
}

// Promote makes a standby a server that writes. The one that it followed is not asked.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	var done bool
	if ask(ctx, t, c, &done, "SELECT pg_promote(true, 60)"); !done {
		t.Fatal("the standby was not promoted")
	}
}

// ask asks a cluster for one value.
func ask(ctx context.Context, t testing.TB, c *Cluster, answer any, query string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, c.URL(owner, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.QueryRow(ctx, query).Scan(answer), conn.Close(ctx)); err != nil {
		t.Fatal(err)
	}
}
