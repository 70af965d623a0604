package main_test

import (
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// throughThreads runs threads, on this machine and by a worker, with a store in the environment.
func throughThreads(t *testing.T, env ...string) *place {
	t.Helper()
	p := newPlace(t, storeProject)
	p.ryes(env, "run", "work")
	worker := exec.Command(p.program, "worker", "--project", p.dir, "--slots", "2", "--name", "one")
	worker.Dir, worker.Env, worker.Stderr = p.dir, slices.Concat(p.env, env), t.Output()
	p.noError(worker.Start())
	t.Cleanup(func() { _ = worker.Process.Kill() })
	p.until(func() (bool, string) {
		workers := p.ryes(env, "workers", "list")
		return strings.Contains(workers, "at work"), "no worker has come: " + workers
	})
	p.ryes(env, "run", "work")
	if shown := p.ryes(env, "threads", "show", "latest", "--json"); !strings.Contains(shown, `"worker": "one"`) || !strings.Contains(shown, `"completed"`) {
		t.Errorf("the worker has not run it:\n%s", shown)
	}
	p.noError(worker.Process.Signal(syscall.SIGTERM))
	if err := worker.Wait(); err != nil {
		t.Errorf("asked to end, the worker says %v", err)
	}
	return p
}

// TestStoreTLS: every connection of every process (who starts, a worker with River, the
// threads, who listens) is encrypted and shows the certificate that settings of libpq name:
// the server takes no other, and has turned nobody away.
func TestStoreTLS(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	root := pgtest.NewAuthority(t)
	c := pgtest.Start(t, pgtest.Options{Network: &pgtest.Network{
		Server: root.Issue(t, pgtest.Certificate{Name: "server", Hosts: []string{"localhost"}}), Clients: root,
		Rules: []string{"hostssl all worker 127.0.0.1/32 cert"},
	}})
	c.Exec(t, "CREATE ROLE worker LOGIN", "CREATE DATABASE team OWNER worker")
	client := root.Issue(t, pgtest.Certificate{Name: "worker"})
	at := "postgres://worker@localhost:" + c.Port() + "/team"
	p := throughThreads(t, storeurl.Variable+"="+at, "PGSSLMODE=verify-full", "PGSSLROOTCERT="+root.File, "PGSSLCERT="+client.Cert, "PGSSLKEY="+client.Key)

	// Nothing of it needs a variable.
	whole := at + "?" + url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root.File}, "sslcert": {client.Cert}, "sslkey": {client.Key}}.Encode()
	if checked := p.ryes([]string{storeurl.Variable + "=" + whole}, "store", "check"); strings.Contains(checked, "not encrypted") {
		t.Error(checked)
	}
	system := at + "?" + url.Values{"sslrootcert": {"system"}, "sslcert": {client.Cert}, "sslkey": {client.Key}}.Encode()
	p.ryes([]string{storeurl.Variable + "=" + system, "SSL_CERT_FILE=" + root.File}, "run", "work")
	if said := c.Refused(t); len(said) > 0 {
		t.Errorf("the server has turned connections away: %q", said)
	}
	if out, err := p.rye([]string{storeurl.Variable + "=" + system}, "threads", "list"); err == nil || !strings.Contains(out, "certificate") {
		t.Errorf("a certificate of nobody known: %v\n%s", err, out)
	}
}

// TestStorePooler: threads and workers run through a pgbouncer in session mode; one in
// transaction mode is refused, with what to do.
func TestStorePooler(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Shared(t)
	database, _, _ := strings.Cut(strings.TrimPrefix(c.Database(t), "postgres://rye@/"), "?")
	p := throughThreads(t, storeurl.Variable+"="+c.Pooler(t, "session")(database))
	out, err := p.rye([]string{storeurl.Variable + "=" + c.Pooler(t, "transaction")(database)}, "store", "check")
	if err == nil || !strings.Contains(out, "transaction mode") || !strings.Contains(out, "pool_mode = session") {
		t.Errorf("%v\n%s", err, out)
	}
}
