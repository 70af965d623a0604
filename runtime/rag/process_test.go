package rag_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// play is what a process of the test binary does in a role.
func play(role string, args []string) error {
	switch role {
	case "write":
		return playWrite(args[0], args[1])
	case "crash":
		return playCrash(args[0], args[1], args[2])
	}
	return fmt.Errorf("bug; no role %q", role)
}

func command(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleVar+"="+role), os.Stderr
	return cmd
}

// written is the row of a number that a process writes.
func written(process string, n int) rag.Row {
	seed := fnv.New64()
	_, _ = seed.Write([]byte(process))
	r := rand.New(rand.NewPCG(uint64(n), seed.Sum64()))
	v := make([]float32, 24)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	row := row(fmt.Sprintf("%s-%03d", process, n), fmt.Sprintf("text of %s word%d", process, n), v...)
	row.ThreadID = process
	return row
}

const (
	eachWrites = 40
	smallest   = 16 // vectors of a chapter
)

// playWrite stores rows one by one, some again and some deleted, and asks in between.
func playWrite(path, process string) error {
	ctx := context.Background()
	x := rag.New(rag.At(path, mark).WithTests(smallest, nil))
	for n := range eachWrites {
		r := written(process, n)
		if _, err := x.Store(ctx, []rag.Row{r}); err != nil {
			return err
		}
		if n%5 == 4 {
			if deleted, err := x.Delete(ctx, rag.Deletion{Namespace: "ns", Project: "p", Keys: []string{written(process, n-1).Key}}); err != nil || deleted != 1 {
				return fmt.Errorf("%d deleted: %w", deleted, err)
			}
		}
		q := ask(r.Text, r.Vector...)
		q.Limit = 1
		answer, err := x.Query(ctx, q)
		if err != nil || keys(answer) != r.Key {
			return fmt.Errorf("asked for %s, found %s: %w", r.Key, show(answer), err)
		}
	}
	return x.Close()
}

// Eight processes that make the index at once, write and ask: nothing is lost, each finds
// what it has written, and afterwards all is as if one had written it.
func TestEightProcesses(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	path := pathIn(t.TempDir())
	var all []*exec.Cmd
	m := &reference{}
	for i := range 8 {
		process := fmt.Sprint("process", i)
		cmd := command(t, "write", path, process)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
		for n := range eachWrites {
			if n%5 != 3 {
				m.store(written(process, n))
			}
		}
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	sameAnswers(t, openWith(t, rag.At(path, mark).WithTests(smallest, nil)), m)
}

// sameAnswers asks an index and the reference the same.
func sameAnswers(t *testing.T, x *rag.Index, m *reference) {
	t.Helper()
	for n := range 10 {
		q := ask("", written("question", n).Vector...)
		q.Limit, q.MinFloor, q.ScoreRatio = 20, -1, 0
		answer := find(t, x, q)
		for i := range m.rows {
			if len(m.rows[i].Metadata) == 0 {
				m.rows[i].Metadata = []byte("{}")
			}
		}
		sameHits(t, answer.Hits, m.nearest(q))
		if answer.Rows != len(m.rows) {
			t.Fatalf("%d rows, want %d", answer.Rows, len(m.rows))
		}
	}
}

// crashRows are what a process stores, one transaction each: chapters are made, become thin
// and are joined.
func crashRows() [][]rag.Row {
	var batches [][]rag.Row
	for _, n := range []int{40, 8} {
		var rows []rag.Row
		for i := range n {
			rows = append(rows, written("crash", i+len(batches)*100))
		}
		batches = append(batches, rows)
	}
	return batches
}

// crashDeletion leaves so little of chapters that they are joined, and their files removed.
func crashDeletion() rag.Deletion {
	d := rag.Deletion{Namespace: "ns", Project: "p"}
	for i := range 30 {
		d.Keys = append(d.Keys, written("crash", i).Key)
	}
	return d
}

func writeAll(ctx context.Context, x *rag.Index) error {
	for _, rows := range crashRows() {
		if _, err := x.Store(ctx, rows); err != nil {
			return err
		}
	}
	_, err := x.Delete(ctx, crashDeletion())
	return err
}

// playCrash kills itself at the nth time that it comes to a step.
func playCrash(path, step, times string) error {
	left, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	x := rag.New(rag.At(path, mark).WithTests(smallest, func(name string) {
		if name != step {
			return
		}
		if left--; left > 0 {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err == nil {
			select {} // until the signal comes
		}
	}))
	return errors.Join(writeAll(context.Background(), x), x.Close())
}

// A process is killed between every two steps of writing files of codes. The entries that it
// has stored are found, by the same answers as ever, and the next one makes the missing files.
func TestCrashWalk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	comes := map[string]int{}
	x := openWith(t, rag.At(pathIn(t.TempDir()), mark).WithTests(smallest, func(name string) { comes[name]++ }))
	if err := writeAll(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if len(comes) != 8 {
		t.Fatalf("the steps are %v", comes)
	}
	for step, times := range comes {
		for _, at := range slices.Compact([]int{1, times}) {
			t.Run(fmt.Sprint(step, " ", at), func(t *testing.T) {
				t.Parallel()
				crashAt(t, step, at)
			})
		}
	}
}

func crashAt(t *testing.T, step string, times int) {
	path := pathIn(t.TempDir())
	err := command(t, "crash", path, step, fmt.Sprint(times)).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
		t.Fatalf("the process was not killed: %v", err)
	}
	opts := rag.At(path, mark).WithTests(smallest, nil)
	opts.Now = func() time.Time { return time.Now().Add(2 * time.Hour) } // the remains are old by then
	opts.Damaged = func(d rag.Damage) { t.Errorf("damaged: %+v", d) }
	x := openWith(t, opts)
	m := &reference{}
	listed, err := x.List(t.Context(), rag.Listing{Namespace: "ns", Project: "p"})
	if err != nil || len(listed) == 0 {
		t.Fatalf("%d rows, %v", len(listed), err)
	}
	for _, r := range listed {
		n, err := strconv.Atoi(strings.TrimPrefix(r.Key, "crash-"))
		if err != nil {
			t.Fatal(err)
		}
		m.store(written("crash", n))
	}
	sameAnswers(t, x, m)
	if err := writeAll(t.Context(), x); err != nil { // again, over what is there
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(codesOf(path), "*.tmp"))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
