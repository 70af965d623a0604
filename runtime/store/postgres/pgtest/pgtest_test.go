package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// roleVar makes a process of the test binary start a cluster, say where, and wait.
const roleVar = "PGTEST_ROLE"

func TestMain(m *testing.M) { os.Exit(m.Run()) }

// TestHeld is what the process does that TestKilled kills.
func TestHeld(t *testing.T) {
	if os.Getenv(roleVar) == "" {
		t.Skip("a process of another test")
	}
	fmt.Println("folder " + Shared(t).Socket())
	select {}
}

// TestKilled: a cluster is gone with the process that has started it, however that ends.
func TestKilled(t *testing.T) {
	t.Parallel()
	program(t, "initdb")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestHeld$")
	cmd.Env = append(os.Environ(), roleVar+"=hold")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var folder string
	for lines := bufio.NewScanner(out); folder == "" && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "folder %s", &folder)
	}
	if _, err := os.Stat(folder + "/.s.PGSQL.5432"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	deadline := time.After(startWait)
	for {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s is still there", folder)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestPower: a server comes back with what was committed, after a stop and after a crash.
func TestPower(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := Start(t, Options{Durable: true})
	url := c.Database(t)
	do(t, url, "CREATE TABLE kept (n int)")
	for n, down := range []func(testing.TB){c.Stop, c.Kill} {
		do(t, url, fmt.Sprintf("INSERT INTO kept VALUES (%d)", n))
		down(t)
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Fatal("a server that was stopped answers")
		}
		c.Up(t)
	}
	c.ReadOnly(t, true)
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), "INSERT INTO kept VALUES (9)"); err == nil {
		t.Error("a read-only server writes")
	}
	c.ReadOnly(t, false)
	var rows int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestSuspend: nothing answers until the server goes on.
func TestSuspend(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	conn := connect(t, c.Database(t))
	answered := make(chan error, 1)
	resume := c.Suspend(t)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("a suspended server answers: %v", err)
	case <-time.After(50 * time.Millisecond): // a server that runs answers in one
	}
	resume()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func do(t *testing.T, url, statement string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestTemplate: clusters are made as copies of what this machine has, which stays as it is,
// and is not taken from somebody else.
func TestTemplate(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	template, err := c.template(program(t, "initdb"))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile(filepath.Join(template, "postgresql.conf"))
	if err != nil || strings.Contains(string(conf), c.folder) {
		t.Errorf("%s is a cluster that was used, %v", template, err)
	}
	if _, err := ownedBy(template, c.uid+1); err == nil {
		t.Error("another user's is taken")
	}
}

// TestInMemory: what does not have to be durable lies in memory, where there is room.
func TestInMemory(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for durable, want := range map[bool]bool{false: roomInMemory(), true: false} {
		c := Start(t, Options{Durable: durable})
		if in := memory != "" && filepath.Dir(c.folder) == memory; in != want {
			t.Errorf("durable %v: %s", durable, c.folder)
		}
	}
}
