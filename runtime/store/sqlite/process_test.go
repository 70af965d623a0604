package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// play is what a process of the test binary does in a role.
func play(role string, args []string) error {
	ctx := context.Background()
	switch role {
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
	}
	if only, ok := systemRoles[role]; ok {
		return only(ctx, args[0])
	}
	return fmt.Errorf("bug; no role %q", role)
}

// systemRoles are those of one operating system; they get a folder.
var systemRoles = map[string]func(ctx context.Context, dir string) error{}

func start(t testing.TB, role string, args ...string) *crowdtest.Player {
	t.Helper()
	return crowdtest.Start(t, roleVar+"="+role, args...)
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
