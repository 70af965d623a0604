package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// roleVar makes a process of the test binary play a role instead of testing.
const roleVar = "POSTGRES_TEST_ROLE"

// play is what a process of the test binary does in a role. It begins when its input ends.
func play(role string, args []string) error {
	ctx := context.Background()
	url, self := args[0], args[1]
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	server, err := postgres.Connect(ctx, postgres.Options{URL: url, Application: "rye-mcp test " + self})
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // the process ends
	st, err := server.Project(ctx, "shop")
	if err != nil {
		return err
	}
	roles := map[string]func(context.Context, *postgres.Store, string) error{"work": playWork, "spend": playSpend}
	return errors.Join(roles[role](ctx, st, self), st.Close())
}

// Of the process test, in all its processes.
const (
	slots   = 3
	perWork = 15
	purse   = shares * share
	shares  = 200
)

// playWork registers threads, queues them, and runs and ends whichever gets a slot.
func playWork(ctx context.Context, st *postgres.Store, self string) error {
	for n := range perWork {
		in := newThread("work", "")
		in.RequestKey = fmt.Sprintf("%s %d", self, n)
		rec, _, err := store.Register(ctx, st, in, nil)
		if err != nil {
			return err
		}
		fmt.Println("registered", rec.ThreadID)
		if rec, err = st.Enqueue(ctx, rec.ThreadID, slots, testTime); err != nil {
			return err
		}
		for admitted := !rec.AdmittedAt.IsZero(); admitted; {
			if err := runThrough(ctx, st, rec.ThreadID); err != nil {
				return err
			}
			if rec, admitted, err = store.Admit(ctx, st, slots, testTime, "", func(thread.Record) error { return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

// runThrough is a thread that runs and ends. It reports another thread that occupies a slot
// meanwhile.
func runThrough(ctx context.Context, st *postgres.Store, id thread.ID) error {
	as := storetest.As(st)
	if _, err := as.Apply(ctx, store.Claimed(id, thread.Process{PID: 1, Host: "h"}, testTime)); err != nil {
		return fmt.Errorf("claim %s: %w", id, err)
	}
	occupants, err := st.Occupants(ctx)
	if err != nil {
		return err
	}
	fmt.Println("occupied", len(occupants))
	end, err := store.Finished(id, thread.Outcome{State: thread.Completed}, nil, testTime)
	if err == nil {
		_, err = as.Apply(ctx, end)
	}
	fmt.Println("ran", id)
	return err
}

// playSpend takes shares of one purse until it is empty.
func playSpend(ctx context.Context, st *postgres.Store, self string) error {
	for n := range 1000 {
		err := st.Reserve(ctx, thread.ID(fmt.Sprintf("spender-%s-%d", self, n)), "purse", share, testTime)
		var empty *store.InsufficientError
		if errors.As(err, &empty) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println("has", n)
	}
	return errors.New("the purse is never empty")
}

// players starts processes in a role at once, kills one of them with SIGKILL after its
// first line where that is asked for, and returns what all have said.
func players(t *testing.T, role, url string, n int, killOne bool) (lines []string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu     sync.Mutex
		ends   sync.WaitGroup
		stdins []io.Closer
	)
	for self := range n {
		cmd := exec.CommandContext(t.Context(), exe, url, fmt.Sprint(self))
		cmd.Env = append(os.Environ(), roleVar+"="+role)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stdins = append(stdins, stdin)
		killed := killOne && self == 0
		ends.Go(func() {
			said := 0
			for scanner := bufio.NewScanner(out); scanner.Scan(); said++ {
				mu.Lock()
				lines = append(lines, scanner.Text())
				mu.Unlock()
				if killed && said == 0 {
					_ = cmd.Process.Kill()
				}
			}
			if err := cmd.Wait(); err != nil && !killed {
				t.Errorf("process %d ended with %v", self, err)
			}
		})
	}
	for _, stdin := range stdins {
		if err := stdin.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ends.Wait()
	return lines
}

// TestProcesses: processes that register, queue and run threads of one project at once,
// beginning with a database that has nothing, never occupy more slots than there are, give
// no id twice, and run no thread twice.
func TestProcesses(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	const processes = 4
	seen := map[string]bool{}
	registered, ran := 0, 0
	for _, line := range players(t, "work", url, processes, false) {
		what, which, _ := strings.Cut(line, " ")
		switch what {
		case "occupied":
			if which > fmt.Sprint(slots) {
				t.Errorf("%s slots are occupied", which)
			}
			continue
		case "registered":
			registered++
		case "ran":
			ran++
		}
		if seen[line] {
			t.Errorf("twice: %s", line)
		}
		seen[line] = true
	}
	st := open(t, connect(t, url), "shop")
	load, err := st.QueueLoad(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if registered != processes*perWork || ran+load.Queued != registered || load.Occupied != 0 {
		t.Errorf("%d registered, %d ran, %+v", registered, ran, load)
	}
}

// TestProcessKilled: of processes that take shares of one purse one is killed. The purse
// has given each share once, and no more than it had.
func TestProcessKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	st := open(t, connect(t, url), "shop")
	if err := st.OpenRoot(t.Context(), "purse", purse, testTime); err != nil {
		t.Fatal(err)
	}
	said := len(players(t, "spend", url, 4, true))
	budget, tree, err := st.Tree(t.Context(), "purse")
	if err != nil {
		t.Fatal(err)
	}
	// The killed one may have taken a share that it did not say any more.
	if budget.Remaining() != 0 || tree.Threads != shares+1 || said > shares || said < shares-1 {
		t.Errorf("%d shares were told, %d budgets, %s left", said, tree.Threads, budget.Remaining())
	}
}
