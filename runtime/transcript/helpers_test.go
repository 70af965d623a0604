package transcript

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testID thread.ID = "test/demo-1772357400"

// testKey signs with a shared secret, which is faster than the real thing and
// no less strict.
type testKey struct{ secret byte }

func newTestKey(secret byte) testKey { return testKey{secret} }

func (k testKey) Sign(hexHash string) string {
	mac := hmac.New(sha256.New, []byte{k.secret})
	mac.Write([]byte(hexHash))
	return hex.EncodeToString(mac.Sum(nil))
}

func (k testKey) Verify(hexHash, sig string) error {
	if k.Sign(hexHash) != sig {
		return errors.New("signature does not match")
	}
	return nil
}

// VerifyFrom implements [Verifier].
func (k testKey) VerifyFrom(fingerprint, hexHash, sig string) error {
	if fingerprint != k.Fingerprint() {
		return sign.ErrOtherKey
	}
	return k.Verify(hexHash, sig)
}

func (k testKey) Fingerprint() string { return fmt.Sprintf("key%d", k.secret) }

// fixedNow is a clock that stands still.
func fixedNow() time.Time { return time.Date(2026, 3, 1, 9, 30, 0, 250e6, time.UTC) }

// interface shared by *testing.T, *testing.B, *testing.F and *rapid.T.
type testingT interface {
	Helper()
	Fatalf(format string, args ...any)
}

func open(t testingT, path string, signer Signer) *Writer {
	t.Helper()
	w, err := Open(records.File(path), testID, Options{Signer: signer, Now: fixedNow})
	must(t, err)
	return w
}

func must(t testingT, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "transcript.jsonl") }

func readFile(t testingT, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func writeFile(t testingT, path string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o600))
}

// allEvents reads a transcript that has no damage.
func allEvents(t testingT, path string) []thread.Event {
	t.Helper()
	var events []thread.Event
	for e, err := range Events(records.File(path)) {
		must(t, err)
		events = append(events, e)
	}
	return events
}

// messages rebuilds the conversation of a transcript, with the images beside it.
func messages(path string) ([]llm.Message, error) {
	return Messages(records.File(path), artifact.Folder(filepath.Join(filepath.Dir(path), "artifacts")))
}

// writeTurn records a turn with one tool call.
func writeTurn(t testingT, w *Writer, turn int) {
	t.Helper()
	must(t, w.Delta(turn, llm.Delta{Type: llm.TextBlock, Text: "Let me "}))
	must(t, w.Delta(turn, llm.Delta{Type: llm.TextBlock, Text: "look."}))
	must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: turn, StopReason: llm.StopToolUse, Blocks: Blocks{
		{Type: llm.TextBlock, Text: "Let me look."},
		{Type: llm.ToolUseBlock, ToolCallID: "c1", ToolName: "rye_bash", Input: []byte(`{"command":"ls"}`)},
	}}))
	must(t, w.Append(thread.EventToolCallStart, ToolCallStart{Turn: turn, CallID: "c1", Tool: "rye/bash", Input: Input(`{"command":"ls"}`)}))
	must(t, w.Append(thread.EventToolCallResult, ToolCallResult{Turn: turn, CallID: "c1", Tool: "rye/bash", Text: "a.txt\n", DurationMS: 3}))
}

// writeThread records a whole thread of that many turns and returns the bytes
// where the lines of the checkpoints end, and the head.
func writeThread(t testingT, path string, signer Signer, turns int) (checkpoints []int64, head thread.TranscriptHead) {
	t.Helper()
	w := open(t, path, signer)
	must(t, w.Append(thread.EventThreadStarted, ThreadStarted{Directive: "test/demo", Model: "scripted/demo"}))
	must(t, w.Append(thread.EventCognitionIn, CognitionIn{Role: llm.User, Blocks: Blocks{{Type: llm.TextBlock, Text: "What is here?"}}}))
	for turn := 1; turn < turns; turn++ {
		writeTurn(t, w, turn)
		must(t, w.Checkpoint(turn))
		checkpoints = append(checkpoints, w.offset)
	}
	must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: turns, StopReason: llm.StopEnd, Blocks: Blocks{{Type: llm.TextBlock, Text: "One file."}}}))
	head, err := w.Finish(thread.Outcome{State: thread.Completed, Result: "One file."}, thread.Cost{Turns: turns, InputTokens: 100, OutputTokens: 20, Spend: 1200})
	must(t, err)
	must(t, w.Close())
	return append(checkpoints, head.Bytes), head
}
