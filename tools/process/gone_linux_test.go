package process

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

// A number that was given to a thread inside another process is no process.
func TestGoneOfAThreadNumber(t *testing.T) {
	t.Parallel()
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		must(t, err)
		if tid != os.Getpid() && !Gone(tid) {
			t.Errorf("thread %d counts as a process", tid)
		}
	}
}

func TestGoneByProc(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	cmd, child := startChild(t, hub, "child")
	if goneByProc(child.pid) {
		t.Error("gone while it lives")
	}
	gone := Watch(t.Context(), child.pid)
	child.send("exit 0")
	arrives(t, "end", gone)
	if !goneByProc(child.pid) {
		t.Error("a zombie counts as alive")
	}
	must(t, cmd.Wait())
	if !goneByProc(child.pid) {
		t.Error("a reaped process counts as alive")
	}
}

func TestEndedState(t *testing.T) {
	t.Parallel()
	tests := []struct {
		stat string
		want bool
	}{
		{"17 (sh) S 1 17", false},
		{"17 (sh) Z 1 17", true},
		{"17 (sh) X 1 17", true},
		{"17 (a) Z b) R 1 17", false}, // a name that looks like a state
		{"17 (a) R b) Z 1 17", true},
		{"17 (sh) ", false},
		{"17 sh Z", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := endedState([]byte(tt.stat)); got != tt.want {
			t.Errorf("%q: %v", tt.stat, got)
		}
	}
}

func FuzzEndedState(f *testing.F) {
	f.Add([]byte("sh"))
	f.Add([]byte(") Z "))
	f.Add([]byte(") R 1"))
	f.Fuzz(func(t *testing.T, name []byte) {
		for state, want := range map[string]bool{"S": false, "Z": true} {
			stat := bytes.Join([][]byte{[]byte("17 ("), name, []byte(") " + state + " 1 17 17 0")}, nil)
			if endedState(stat) != want {
				t.Errorf("%q: %v", stat, !want)
			}
		}
		endedState(name)
	})
}
