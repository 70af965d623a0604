package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// poolerProgram is where Debian puts it, which is not in everybody's PATH.
const poolerProgram = "/usr/sbin/pgbouncer"

// Pooler starts a pgbouncer before the cluster, in a mode of it (session, transaction), with
// further lines of its configuration. It is otherwise as it is when nobody has set anything.
// Where it is not installed the test is skipped, as where PostgreSQL is not. The function
// gives the URL of a database of the cluster through it.
func (c *Cluster) Pooler(t testing.TB, mode string, lines ...string) (through func(database string) string) {
	t.Helper()
	program := installedPooler(t)
	folder, err := os.MkdirTemp(c.folder, "pool-") //nolint:usetesting // it is removed with the cluster, and has a short name
	if err != nil {
		t.Fatal(err)
	}
	c.keepIn(t, folder, "users", []byte(`"`+owner+`" ""`+"\n"))
	c.keepIn(t, folder, "pgbouncer.ini", fmt.Appendf(nil, `[databases]
* = host=%s port=%s
[pgbouncer]
listen_port = 6432
unix_socket_dir = %s
auth_type = trust
auth_file = %s/users
pool_mode = %s
%s
`, c.folder, c.Port(), folder, folder, mode, strings.Join(lines, "\n")))
	if err := c.own(folder); err != nil {
		t.Fatal(err)
	}
	c.startPooler(t, program, folder)
	through = func(database string) string {
		u := url.URL{Scheme: "postgres", User: url.User(owner), Path: "/" + database, RawQuery: url.Values{"host": {folder}, "port": {"6432"}}.Encode()}
		return u.String()
	}
	poolerAnswers(t, through("postgres"), filepath.Join(folder, "log"))
	return through
}

// untilLeft runs a program until its own standard input ends.
const untilLeft = `"$@" & pid=$!; cat >/dev/null; kill -TERM $pid; wait $pid`

func (c *Cluster) startPooler(t testing.TB, program, folder string) {
	t.Helper()
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the program has its own
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", untilLeft, "sh", program, filepath.Join(folder, "pgbouncer.ini"))
	cmd.SysProcAttr, cmd.Dir, cmd.Stdout, cmd.Stderr = c.attr, "/", log, log
	leash, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = leash.Close()
		_ = cmd.Wait() // its status says how it was told to end
	})
}

func installedPooler(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath(poolerProgram)
	if err != nil {
		path, err = exec.LookPath("pgbouncer")
	}
	if err != nil {
		lacking(t, fmt.Errorf("pgbouncer is not installed (apt-get install pgbouncer)"))
	}
	return path
}

func poolerAnswers(t testing.TB, url, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(log)
			t.Fatalf("pgbouncer does not answer: %v\n%s", err, said)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
