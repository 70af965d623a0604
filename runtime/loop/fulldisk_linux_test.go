package loop

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// TestFullDisk runs threads on a disk that becomes full while a result is
// written.
func TestFullDisk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if !disktest.Isolated(t) {
		return
	}
	t.Run("space comes back before the end", testSpaceAtTheEnd)
	t.Run("space comes back later", testSpaceLater)
	t.Run("while messages are read", testMessagesOnFullDisk)
	for _, at := range approvalSteps {
		t.Run("while it hands over, at "+string(at), func(t *testing.T) { testHandoffOnFullDisk(t, at) })
	}
}

// onDisk is a house on a disk of its own.
func onDisk(t *testing.T) (*house, *disktest.Disk) {
	t.Helper()
	disk := disktest.Mount(t, t.TempDir(), "2m")
	key, err := sign.Generate(t.TempDir(), false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return openHouse(t, disk.Dir, key), disk
}

// testHandoffOnFullDisk: the disk becomes full while a thread asks whether it may hand over,
// and does. It has handed over then, or died as any other, and the next one hands over.
func testHandoffOnFullDisk(t *testing.T, at thread.Crashpoint) {
	h, disk := onDisk(t)
	h.makeRoom = disk.Empty
	id := h.handingOver()
	h.asksFirst(id)
	r := newRun(h.deps(id))
	came := false
	r.Crashpoints = func(now thread.Crashpoint) {
		if now == at {
			came = true
			disk.Fill()
		}
	}
	rec, err := r.toEnd(t.Context())
	_ = r.Transcript.Close()
	disk.Empty()
	if err != nil {
		rec = h.settle(id)
	}
	handedOver := rec.Status == thread.Continued // behind its outcome it has; before that there may be room for a line
	if !came || !handedOver && (rec.Status != thread.Error || at == CrashDecided || at == CrashStarted) {
		t.Errorf("it came there %t, %v, and is %s %+v", came, err, rec.Status, rec.Outcome.Error)
	}
	h.checkAgreement(t.Context(), rec)
	h.stopped = nil
	next := h.handingOver()
	h.asksFirst(next)
	if rec := h.end(t.Context(), next); rec.Status != thread.Continued {
		t.Errorf("the next one is %s %+v", rec.Status, rec.Outcome.Error)
	}
}

// filled is a house on a disk of its own that a tool fills, whose result then has
// no room.
func filled(t *testing.T) (h *house, r *run, disk *disktest.Disk) {
	t.Helper()
	h, disk = onDisk(t)
	h.tools.act = func() error {
		disk.Fill()
		return nil
	}
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_act}], usage: {input_tokens: 100, output_tokens: 10}}\n" +
		"  - {text: done, usage: {input_tokens: 100, output_tokens: 10}}\n")
	return h, newRun(h.deps(h.register(job{}))), disk
}

// testSpaceAtTheEnd: the thread says what was the matter.
func testSpaceAtTheEnd(t *testing.T) {
	h, r, disk := filled(t)
	r.StopChildren = func(context.Context, thread.ID) error {
		disk.Empty()
		return nil
	}
	rec, err := r.toEnd(t.Context())
	if err != nil || rec.Status != thread.Error || rec.Outcome.Error.Code != "disk_full" ||
		!strings.Contains(rec.Outcome.Error.Message, "no space left") {
		t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome, err)
	}
	if len(h.server.Requests()) != 1 || rec.Cost.Spend != 120 {
		t.Errorf("%d requests, spent %s", len(h.server.Requests()), rec.Cost.Spend)
	}
	h.checkAgreement(t.Context(), rec)
	h.checkWhole(r.ID)
}

// testSpaceLater: the process ends without an outcome that counts, and what it
// left is settled when there is space.
func testSpaceLater(t *testing.T) {
	h, r, disk := filled(t)
	if rec, err := r.toEnd(t.Context()); err == nil {
		t.Fatalf("the thread ended as %s on a full disk", rec.Status)
	}
	_ = r.Transcript.Close() // as the end of the process does
	if rec, err := h.store.Get(t.Context(), r.ID); err != nil || rec.Status.Terminal() {
		t.Errorf("%s, %v", rec.Status, err)
	}
	disk.Empty()
	rec := h.settle(r.ID)
	if code := rec.Outcome.Error.Code; rec.Status != thread.Error || code != "disk_full" && code != "process_died" || rec.Cost.Spend != 120 {
		t.Errorf("%s %+v, spent %s", rec.Status, rec.Outcome.Error, rec.Cost.Spend)
	}
	h.checkAgreement(t.Context(), rec)
	h.checkWhole(r.ID)
}

// checkWhole: no half of an event is in the transcript, and no result that was
// not recorded in full.
func (h *house) checkWhole(id thread.ID) {
	h.t.Helper()
	for e, err := range transcript.Events(records.File(h.folder(id).Transcript())) {
		if err != nil {
			h.t.Errorf("after event %d: %v", e.Seq, err)
		}
	}
	for _, result := range h.results(id) {
		h.t.Errorf("a result of %d bytes found room on a full disk", len(result.Text))
	}
}

// testMessagesOnFullDisk: the disk becomes full between the messages that a thread reads.
// Each is in the transcript or in the queue when there is space again, and none can be
// posted before.
func testMessagesOnFullDisk(t *testing.T) {
	h, r, disk := filled(t)
	h.post(r.ID, "one", "two", "three")
	r.Crashpoints = func(at thread.Crashpoint) {
		if at == CrashHeard {
			disk.Fill()
		}
	}
	if rec, err := r.toEnd(t.Context()); err == nil {
		t.Fatalf("the thread ended as %s on a full disk", rec.Status)
	}
	_ = r.Transcript.Close()
	late := thread.Message{ID: "late", Kind: thread.Steer, Reader: r.ID, From: thread.Sender{Kind: thread.ByPerson}, Text: "late", At: r.Now()}
	if _, err := h.store.Post(t.Context(), late, store.NoteBound{}); err == nil {
		t.Error("a message was posted on a full disk")
	}
	disk.Empty()
	rec := h.settle(r.ID)
	if rec.Status != thread.Error || len(h.server.Requests()) > 0 {
		t.Errorf("%s, %d requests", rec.Status, len(h.server.Requests()))
	}
	h.checkMessages(r.ID, "one", "two", "three")
	h.checkAgreement(t.Context(), rec)
}
