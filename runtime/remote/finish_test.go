package remote_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/remote"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// finisher ends threads on a machine.
func (m *machine) finisher() *finish.Finisher {
	return &finish.Finisher{Store: m.store, Records: m, Now: time.Now, Crashpoints: m.Crashpoints}
}

// end ends the thread by a run, as completed unless it has ended as something else.
func (m *machine) end(run thread.Run, state thread.State) error {
	f := m.finisher()
	w, err := f.OpenTranscript(id, run)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	o := thread.Outcome{State: state, Result: "done"}
	if state == thread.Error {
		o = thread.Outcome{State: state, Error: &thread.Problem{Code: thread.CodeDied, Message: "died"}}
	}
	_, err = f.Finish(m.context(), m.store.Runner(id, run), w, o, thread.Cost{Turns: 1})
	return err
}

// finishAndDie is the process of a thread that is killed when it comes to a crash point
// for the nth time.
func finishAndDie(m *machine) error {
	point, times := "", 0
	if _, err := fmt.Sscan(os.Getenv(atVariable), &point, &times); err != nil {
		return err
	}
	m.Crashpoints = dieAt(point, times)
	run := thread.Run(os.Getenv("REMOTE_RUN"))
	of := m.By(id, run)
	if err := errors.Join(of.Prepare(), of.Meta().Write(meta(thread.Running, 0))); err != nil {
		return err
	}
	w, err := m.finisher().OpenTranscript(id, run)
	if err != nil {
		return err
	}
	if err := errors.Join(w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: 1}), w.Checkpoint(1), w.Close()); err != nil {
		return err
	}
	if err := m.end(run, thread.Completed); err != nil {
		return err
	}
	return errors.New("it was not killed")
}

// ended is what a machine finds of the end of the thread.
func (m *machine) ended(t *testing.T) (row, described, said thread.State) {
	t.Helper()
	rec, err := m.store.Get(t.Context(), id)
	must(t, err)
	found, err := m.Of(id).Meta().Read()
	if err != nil && !errors.Is(err, thread.ErrNoMeta) {
		t.Fatal(err)
	}
	if o, _, err := transcript.LastOutcome(m.Of(id).Transcript()); err == nil && o != nil {
		said = o.State
	}
	return rec.Status, found.Status, said
}

// TestKilledAtTheEnd kills the process of a thread between every two steps of its end. Another
// machine finds metadata and transcript of the end wherever the row says that it has ended,
// and settles what has not; then all three say the same on both.
func TestKilledAtTheEnd(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	var points []string
	for _, p := range finish.Crashpoints() {
		points = append(points, string(p)+" 1")
	}
	for _, p := range []thread.Crashpoint{remote.CrashSynced, remote.CrashShipped} {
		points = append(points, fmt.Sprint(p, " 1"), fmt.Sprint(p, " 2")) // of the first turn, of the end
	}
	points = append(points, fmt.Sprint(remote.CrashShipped, " 3"), fmt.Sprint(remote.CrashDescribed, " 2")) // of thread.json
	for _, point := range points {
		t.Run(strings.ReplaceAll(point, " ", "#"), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			a, b := f.machine(t), f.machine(t)
			run, next := thread.NewRun(), thread.NewRun()
			a.registered(t, id, run)
			wantKilled(t, f.process(t, a, "finish", atVariable+"="+point, "REMOTE_RUN="+string(run)))
			row, described, said := b.ended(t)
			if row.Terminal() && (described != row || said != row) {
				t.Errorf("the row says %s, thread.json %s, the transcript %q", row, described, said)
			}
			if !row.Terminal() {
				_, err := b.store.Replace(t.Context(), id, run, next)
				must(t, err)
				must(t, b.end(next, thread.Error))
			}
			for _, m := range []*machine{a, b} {
				row, described, said := m.ended(t)
				if !row.Terminal() || described != row || said != row {
					t.Errorf("in the end the row says %s, thread.json %s, the transcript %q", row, described, said)
				}
			}
		})
	}
}
