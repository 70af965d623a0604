package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// play is what a process of the test binary does in a role.
func play(role string, args []string) error {
	ctx := context.Background()
	switch role {
	case "admit":
		return playAdmit(ctx, args[0], os.Stdin, os.Stdout)
	case "register":
		return playRegister(ctx, args[0], os.Stdin, os.Stdout)
	case "hold":
		return playHold(ctx, args[0], os.Stdin, os.Stdout)
	case "contend":
		return playContend(ctx, args[0], args[1], args[2], os.Stdin, os.Stdout)
	case "finish":
		return playFinish(ctx, args[0], os.Stdin, os.Stdout)
	case "rescue":
		return playRescue(ctx, args[0], os.Stdin, os.Stdout)
	case "storm":
		return playStorm(ctx, args[0], os.Stdin)
	case "spend":
		return playSpend(ctx, args[0], args[1], args[2], args[3], os.Stdout)
	}
	if only, ok := systemRoles[role]; ok {
		return only(ctx, args[0])
	}
	return fmt.Errorf("bug; no role %q", role)
}

// systemRoles are those of one operating system; they get a folder.
var systemRoles = map[string]func(ctx context.Context, dir string) error{}

// player is a process of the test binary in a role.
type player struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func start(t testing.TB, role string, args ...string) *player {
	t.Helper()
	p := &player{cmd: command(t, role, args...)}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// command is a process of the test binary in a role, not yet started.
func command(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// line returns the next line the process prints, or "" when it has ended.
func (p *player) line() string {
	if !p.lines.Scan() {
		return ""
	}
	return p.lines.Text()
}

// goAhead ends what the process reads, which it waits for.
func (p *player) goAhead(t testing.TB) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process with SIGKILL. What it printed before can still be read.
func (p *player) kill(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// awaitEnd waits for a process that must succeed, or was killed.
func (p *player) awaitEnd(t testing.TB, killed bool) {
	t.Helper()
	for p.lines.Scan() { // Wait closes the pipe
	}
	if err := p.cmd.Wait(); (err != nil) != killed {
		t.Errorf("process ended with %v, killed %v", err, killed)
	}
}

// playRegister waits until its input ends and registers one thread in a folder
// that does not exist yet.
func playRegister(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	rec, _, err := store.Register(ctx, s, newThread("d", ""), claimNothing)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, rec.ThreadID); err != nil {
		return err
	}
	return s.Close()
}

// playHold keeps a write transaction open until its input ends.
func playHold(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	err = s.registry.Write(ctx, sqlstore.Relaxed, func(ctx context.Context, tx *sql.Tx) error {
		at := testTime.UnixMilli()
		_, err := tx.ExecContext(ctx, `INSERT INTO threads (thread_id, id_ordinal, kind, directive, created_at, updated_at, last_used)
			VALUES (?, 1, 'directive', 'held', ?, ?, ?)`, thread.NewID("held", testTime, 1), at, at, at)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, "held"); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, in)
		return err
	})
	return errors.Join(err, s.Close())
}
