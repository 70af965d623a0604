package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

func now() time.Time { return time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC) }

// turns is how many turns the threads of these tests have.
const turns = 3

// scene is a state folder with threads.
type scene struct {
	testing.TB
	store     *sqlite.Store
	key       *sign.Key
	stateDir  string
	knowledge string
}

func newScene(t testing.TB, key *sign.Key) *scene {
	t.Helper()
	s := &scene{TB: t, key: key, stateDir: t.TempDir(), knowledge: t.TempDir()}
	var err error
	s.store, err = sqlite.Open(t.Context(), s.stateDir, sqlite.Options{Now: now})
	s.must(err)
	t.Cleanup(func() { s.must(s.store.Close()) })
	return s
}

func newKey(t testing.TB, seed byte) *sign.Key {
	t.Helper()
	key, err := sign.Generate(t.TempDir(), false, bytes.NewReader(bytes.Repeat([]byte{seed}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// start registers a thread and writes what it has before its first turn.
func (s *scene) start(directive string) thread.Record {
	s.Helper()
	n := store.NewThread{Kind: thread.KindDirective, Directive: directive, Now: now()}
	rec, _, err := store.Register(s.Context(), s.store, n, func(id thread.ID) error { return folder.Of(s.stateDir, id).Make() })
	s.must(err)
	dir := s.folder(rec)
	meta := thread.Meta{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: directive, Status: thread.Running, CreatedAt: now(),
		Limits: thread.Limits{Turns: 9, Spend: 500_000}, Capabilities: []string{"rye.fetch.*"},
	}
	s.must(dir.WriteMeta(meta, placetest.Seal(s.key)))
	_, err = s.store.Enqueue(s.Context(), rec.ThreadID, 99, now())
	s.must(err)
	rec, err = storetest.As(s.store).Apply(s.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "here"}, now()))
	s.must(err)
	text := fmt.Appendf(nil, "# Capabilities of %s\n\n- rye.fetch.*\n", rec.ThreadID)
	text = s.signCapabilities(text, rec, s.key)
	s.must(dir.WriteCapabilities(text))
	big := bytes.Repeat([]byte("large "), 9000)
	_, err = dir.WriteArtifact(hashText(big), big)
	s.must(err)
	return rec
}

func (s *scene) signCapabilities(text []byte, rec thread.Record, key *sign.Key) []byte {
	signed, err := sign.Attach(text, ".md", records.CapabilitiesName(rec.ThreadID), key, now())
	s.must(err)
	return signed
}

func hashText(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *scene) folder(rec thread.Record) folder.Folder { return folder.Of(s.stateDir, rec.ThreadID) }

func (s *scene) finisher() *finish.Finisher {
	return &finish.Finisher{Store: s.store, Records: records.Local{Home: folder.Home{Dir: s.stateDir, Seal: placetest.Seal(s.key)}.Always()}, KnowledgeDir: s.knowledge, Now: now}
}

// play writes the turns of a thread, each with its checkpoint but the last.
func (s *scene) play(rec thread.Record) *transcript.Writer {
	s.Helper()
	w, err := s.finisher().OpenTranscript(rec.ThreadID, "")
	s.must(err)
	s.must(w.Append(thread.EventThreadStarted, transcript.ThreadStarted{Directive: rec.Directive}))
	for turn := 1; turn <= turns; turn++ {
		s.must(storetest.As(s.store).RecordCost(s.Context(), rec.ThreadID, thread.Cost{Turns: turn, Spend: thread.Micros(turn)}, 0))
		s.must(w.Append(thread.EventCognitionOut, transcript.CognitionOut{
			Turn: turn, StopReason: llm.StopEnd, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: fmt.Sprintf("Answer %d.", turn)}},
		}))
		if turn < turns {
			s.must(w.Checkpoint(turn))
		}
	}
	return w
}

// end ends the thread the way it says.
func (s *scene) end(rec thread.Record, w *transcript.Writer, o thread.Outcome) thread.Record {
	s.Helper()
	rec, err := s.finisher().Finish(s.Context(), s.store.Runner(rec.ThreadID, ""), w, o, thread.Cost{Turns: turns, Spend: turns})
	s.must(err)
	s.must(w.Close())
	return rec
}

var (
	completed = thread.Outcome{State: thread.Completed, Result: "done"}
	hasDied   = thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: thread.CodeDied, Message: "died"}}
)

// whole is a thread that ended as it should.
func (s *scene) whole(directive string) thread.Record {
	s.Helper()
	rec := s.start(directive)
	return s.end(rec, s.play(rec), completed)
}

func (s *scene) subject(rec thread.Record) Subject {
	return Subject{
		Row: rec, Records: s.finisher().Records, Rendering: finish.Rendering(s.knowledge, rec), RenderingID: finish.RenderingID(rec),
		LedgerSpend: &rec.Cost.Spend,
	}
}

func (s *scene) audit(subject Subject) *Report {
	s.Helper()
	report, err := Thread(subject)
	s.must(err)
	return report
}

func (s *scene) read(path string) string {
	s.Helper()
	text, err := os.ReadFile(path)
	s.must(err)
	return string(text)
}

func (s *scene) write(path, text string) {
	s.Helper()
	s.must(os.WriteFile(path, []byte(text), 0o600))
}

// edit changes a file, which must have what is to be replaced.
func (s *scene) edit(path, old, replacement string) {
	s.Helper()
	text := s.read(path)
	if !strings.Contains(text, old) {
		s.Fatalf("%s lacks %q:\n%s", path, old, text)
	}
	s.write(path, strings.Replace(text, old, replacement, 1))
}

// editLines changes the lines of a transcript.
func (s *scene) editLines(rec thread.Record, change func([]string) []string) {
	s.Helper()
	path := s.folder(rec).Transcript()
	s.write(path, strings.Join(change(slices.Collect(strings.Lines(s.read(path)))), ""))
}

// rewriteMeta changes thread.json and signs it.
func (s *scene) rewriteMeta(rec thread.Record, key *sign.Key, change func(*thread.Meta)) {
	s.Helper()
	meta, err := s.folder(rec).PeekMeta()
	s.must(err)
	change(&meta)
	s.must(s.folder(rec).WriteMeta(meta, placetest.Seal(key)))
}

func isCheckpoint(line string) bool { return strings.Contains(line, `"event_type":"checkpoint"`) }

// renumber gives lines the numbers they have by their place.
func renumber(lines []string) []string {
	for i, line := range lines {
		head, rest, _ := strings.Cut(line, `"seq":`)
		_, rest, _ = strings.Cut(rest, ",")
		lines[i] = fmt.Sprintf(`%s"seq":%d,%s`, head, i+1, rest)
	}
	return lines
}
