package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWholeThreads(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	live := s.start("live")
	w := s.play(live)
	dead := s.start("dead")
	for name, rec := range map[string]thread.Record{
		"completed": s.whole("done"), "running": live, "died": s.end(dead, s.play(dead), hasDied),
	} {
		rec, err := s.store.Get(t.Context(), rec.ThreadID)
		s.must(err)
		report := s.audit(s.subject(rec))
		if !report.Good() || len(report.Warnings) > 0 || report.Meta == nil || report.Transcript.Turns != turns {
			t.Errorf("%s: %+v", name, report)
		}
	}
	s.must(w.Close())
	failed, _, err := store.Register(t.Context(), s.store, store.NewThread{Kind: thread.KindDirective, Directive: "never", Now: now()},
		func(id thread.ID) error { return folder.Of(s.stateDir, id).Make() })
	s.must(err)
	if report := s.audit(s.subject(failed)); !report.Good() {
		t.Errorf("a thread that was never prepared: %+v", report)
	}
}

// attack is something done to the files of a thread that has completed.
type attack struct {
	name string
	do   func(s *scene, rec thread.Record)
	file string
	want transcript.Damage
	turn int // the first bad one, of a transcript
}

var attacks = []attack{
	{"checkpoints stripped", func(s *scene, rec thread.Record) {
		s.editLines(rec, func(l []string) []string { return slices.DeleteFunc(l, isCheckpoint) })
	}, transcriptFile, transcript.Stripped, 1},
	{"checkpoints stripped, lines renumbered", func(s *scene, rec thread.Record) {
		s.editLines(rec, func(l []string) []string { return renumber(slices.DeleteFunc(l, isCheckpoint)) })
	}, transcriptFile, transcript.Stripped, 1},
	{"signatures of checkpoints stripped", func(s *scene, rec thread.Record) {
		s.editLines(rec, func(l []string) []string {
			at := slices.IndexFunc(l, isCheckpoint)
			before, rest, _ := strings.Cut(l[at], `,"sig":"`)
			_, after, _ := strings.Cut(rest, `"`)
			l[at] = before + after
			return l
		})
	}, transcriptFile, transcript.Stripped, 1},
	{"truncated at a checkpoint", func(s *scene, rec thread.Record) {
		s.editLines(rec, func(l []string) []string { return l[:slices.IndexFunc(l, isCheckpoint)+1] })
	}, transcriptFile, transcript.Truncated, 2},
	{"truncated within a line", func(s *scene, rec thread.Record) {
		s.must(os.Truncate(s.folder(rec).Transcript(), 700))
	}, transcriptFile, transcript.Truncated, 0},
	{"emptied", func(s *scene, rec thread.Record) {
		s.write(s.folder(rec).Transcript(), "")
	}, transcriptFile, transcript.Truncated, 1},
	{"removed", func(s *scene, rec thread.Record) {
		s.must(os.Remove(s.folder(rec).Transcript()))
	}, transcriptFile, Missing, 1},
	{"lines reordered", func(s *scene, rec thread.Record) {
		s.editLines(rec, func(l []string) []string {
			l[2], l[3] = l[3], l[2]
			return l
		})
	}, transcriptFile, transcript.Reordered, 0},
	{"answer edited", func(s *scene, rec thread.Record) {
		s.edit(s.folder(rec).Transcript(), "Answer 2.", "Answer 9.")
	}, transcriptFile, transcript.Altered, 2},
	{"events of another thread spliced in", func(s *scene, rec thread.Record) {
		other := s.whole("other")
		foreign := strings.SplitAfter(s.read(s.folder(other).Transcript()), "\n")
		s.editLines(rec, func(l []string) []string { l[3] = foreign[3]; return l })
	}, transcriptFile, transcript.Spliced, 2},
	{"transcript and thread.json of another thread", func(s *scene, rec thread.Record) {
		other := s.folder(s.whole("other"))
		s.write(s.folder(rec).Transcript(), s.read(other.Transcript()))
		s.write(s.folder(rec).Meta(), s.read(other.Meta()))
	}, metaFile, transcript.Spliced, 0},
	{"unsigned event appended", func(s *scene, rec thread.Record) {
		s.editLines(rec, func(l []string) []string { return renumber(append(l, l[1])) })
	}, transcriptFile, transcript.Altered, 0},
	{"signed by another key", func(s *scene, rec thread.Record) {
		s.must(os.Remove(s.folder(rec).Transcript()))
		forger := *s
		forger.key = newKey(s, 7)
		w, err := forger.finisher().OpenTranscript(rec.ThreadID, "")
		s.must(err)
		s.must(w.Append(thread.EventThreadStarted, transcript.ThreadStarted{Directive: rec.Directive}))
		head, err := w.Finish(completed, thread.Cost{Turns: 1})
		s.must(err)
		s.must(w.Close())
		s.rewriteMeta(rec, forger.key, func(m *thread.Meta) { m.Transcript = &head })
	}, transcriptFile, transcript.Foreign, 1},
	{"thread.json signed by another key", func(s *scene, rec thread.Record) {
		s.rewriteMeta(rec, newKey(s, 7), func(*thread.Meta) {})
	}, metaFile, transcript.Foreign, 0},
	{"limits raised", func(s *scene, rec thread.Record) {
		s.edit(s.folder(rec).Meta(), `"turns":9`, `"turns":99`)
	}, metaFile, transcript.Altered, 0},
	{"signature of thread.json stripped", func(s *scene, rec thread.Record) {
		s.rewriteMeta(rec, nil, func(m *thread.Meta) { m.Capabilities = []string{"*"} })
	}, metaFile, Unsigned, 0},
	{"thread.json removed", func(s *scene, rec thread.Record) {
		s.must(os.Remove(s.folder(rec).Meta()))
	}, metaFile, Missing, 0},
	{"capabilities widened", func(s *scene, rec thread.Record) {
		s.edit(s.folder(rec).Capabilities(), "rye.fetch.*", "rye.*")
	}, capabilitiesFile, transcript.Altered, 0},
	{"capabilities widened and signed by another key", func(s *scene, rec thread.Record) {
		text := fmt.Appendf(nil, "# Capabilities of %s\n\n- rye.*\n", rec.ThreadID)
		s.must(s.folder(rec).WriteCapabilities(s.signCapabilities(text, rec, newKey(s, 7))))
	}, capabilitiesFile, transcript.Foreign, 0},
	{"capabilities of another thread", func(s *scene, rec thread.Record) {
		s.write(s.folder(rec).Capabilities(), s.read(s.folder(s.whole("other")).Capabilities()))
	}, capabilitiesFile, transcript.Spliced, 0},
	{"capabilities removed", func(s *scene, rec thread.Record) {
		s.must(os.Remove(s.folder(rec).Capabilities()))
	}, capabilitiesFile, Missing, 0},
	{"rendering altered", func(s *scene, rec thread.Record) {
		s.edit(finish.Rendering(s.knowledge, rec), "Answer 2.", "Answer 9.")
	}, renderingFile, transcript.Altered, 0},
	{"rendering of another thread", func(s *scene, rec thread.Record) {
		s.write(finish.Rendering(s.knowledge, rec), s.read(finish.Rendering(s.knowledge, s.whole("other"))))
	}, renderingFile, transcript.Spliced, 0},
	{"artifact altered", func(s *scene, rec thread.Record) {
		files, err := filepath.Glob(filepath.Join(s.folder(rec).Artifacts(), "*"))
		s.must(err)
		s.edit(files[0], "large", "small")
	}, "", transcript.Altered, 0},
	{"artifact replaced by a link", func(s *scene, rec thread.Record) {
		files, err := filepath.Glob(filepath.Join(s.folder(rec).Artifacts(), "*"))
		s.must(err)
		s.must(os.Rename(files[0], filepath.Join(s.TempDir(), "x")))
		s.must(os.Symlink("/dev/null", files[0]))
	}, "", Unreadable, 0},
}

// TestAttacks does everything that can be done to a thread's files without the
// key, and expects it to be named: the file, the kind of damage, the turn.
func TestAttacks(t *testing.T) {
	t.Parallel()
	key := newKey(t, 1)
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, key)
			rec := s.whole("victim")
			a.do(s, rec)
			for _, lenient := range []bool{false, true} {
				subject := s.subject(rec)
				subject.Lenient = lenient
				report := s.audit(subject)
				if !slices.ContainsFunc(report.Findings, func(f Finding) bool {
					return f.Damage == a.want && (f.File == a.file || a.file == "" && strings.HasPrefix(f.File, "artifacts/")) &&
						(a.turn == 0 || f.Turn == a.turn)
				}) {
					t.Errorf("lenient %t: %s of %s in turn %d is not among %+v", lenient, a.want, a.file, a.turn, report.Findings)
				}
			}
		})
	}
}

// TestRollback puts back an older state of a thread in which every file is
// genuine and fits the others. Only the registry knows better.
func TestRollback(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	rec := s.start("victim")
	dir := s.folder(rec)
	older := s.read(dir.Meta())
	rec = s.end(rec, s.play(rec), completed)
	full := s.read(dir.Transcript())
	s.write(dir.Meta(), older)
	s.editLines(rec, func(l []string) []string { return l[:slices.IndexFunc(l, isCheckpoint)+1] })

	report := s.audit(s.subject(rec))
	if len(report.Findings) != 2 || report.Findings[0].Damage != RolledBack || report.Findings[1].Damage != transcript.Truncated ||
		report.Findings[1].Turn != 2 {
		t.Errorf("both: %+v", report.Findings)
	}
	// Nothing that ends threads signs such a transcript anew.
	w, err := s.finisher().OpenTranscript(rec.ThreadID, "")
	s.must(err)
	if _, err := s.finisher().Finish(t.Context(), s.store.Runner(rec.ThreadID, ""), w, completed, rec.Cost); err == nil {
		t.Error("the rest was signed as if it were whole")
	}
	s.must(w.Close())

	// The last turn and the end alone are missed too.
	before, _, _ := strings.Cut(full, `"turn":3`)
	s.write(dir.Transcript(), before[:strings.LastIndex(before, "\n")+1])
	if report := s.audit(s.subject(rec)); len(report.Findings) != 2 || report.Findings[1].Damage != transcript.Truncated {
		t.Errorf("without the end: %+v", report.Findings)
	}
	// thread.json of a thread that another run of it has written.
	s.write(dir.Transcript(), full)
	s.rewriteMeta(rec, s.key, func(m *thread.Meta) {
		head := transcriptHead(s, rec)
		m.Status, m.Transcript, m.Cost = thread.Completed, &head, thread.Cost{Turns: 1}
	})
	if report := s.audit(s.subject(rec)); len(report.Findings) != 1 || report.Findings[0].Damage != RolledBack {
		t.Errorf("another cost: %+v", report.Findings)
	}
}

// TestEditedResult: everybody is told the result that the registry has, which is
// not signed. The transcript is.
func TestEditedResult(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	rec := s.whole("victim")
	for name, outcome := range map[string]*thread.Outcome{
		"another result": {State: thread.Completed, Result: "not done"},
		"outputs added":  {State: thread.Completed, Result: "done", Outputs: map[string]any{"approved": true}},
		"none":           nil,
	} {
		rec.Outcome = outcome
		report := s.audit(s.subject(rec))
		if len(report.Findings) != 1 || report.Findings[0].File != registryFile || report.Findings[0].Damage != transcript.Altered {
			t.Errorf("%s: %+v", name, report.Findings)
		}
	}
}

// TestEditedMoney: neither the ledger nor the cost in the registry is signed, and
// receipts are made of them.
func TestEditedMoney(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	live := s.start("live")
	w := s.play(live)
	never, _, err := store.Register(t.Context(), s.store, store.NewThread{Kind: thread.KindDirective, Directive: "never", Now: now()},
		func(id thread.ID) error { return folder.Of(s.stateDir, id).Make() })
	s.must(err)
	never.Status = thread.Error
	signed := thread.Cost{Turns: turns, Spend: turns}
	for _, tt := range []struct {
		name   string
		rec    thread.Record
		cost   thread.Cost
		ledger thread.Micros
		file   string // of the one finding
		want   transcript.Damage
	}{
		{"as it was", s.whole("a"), signed, turns, "", ""},
		{"ledger lowered", s.whole("b"), signed, turns - 1, ledgerFile, LedgerDiffers},
		{"ledger raised", s.whole("c"), signed, turns + 1, ledgerFile, LedgerDiffers},
		{"still running", live, live.Cost, turns + 1, "", ""},
		{"cost of one that has nothing", never, thread.Cost{Spend: 9}, 9, transcriptFile, Missing},
	} {
		subject := s.subject(tt.rec)
		subject.Row.Cost, subject.LedgerSpend = tt.cost, &tt.ledger
		findings := s.audit(subject).Findings
		if tt.want == "" && len(findings) > 0 ||
			tt.want != "" && (len(findings) != 1 || findings[0].File != tt.file || findings[0].Damage != tt.want) {
			t.Errorf("%s: %+v", tt.name, findings)
		}
	}
	s.must(w.Close())
	for name, rec := range map[string]thread.Record{"of one that has ended": s.whole("d"), "of one that runs": live} {
		subject := s.subject(rec)
		subject.LedgerSpend = nil
		if f := s.audit(subject).Findings; len(f) != 1 || f[0].File != ledgerFile || f[0].Damage != Missing {
			t.Errorf("no budget %s: %+v", name, f)
		}
	}
	// Without a thread.json the transcript still says what the thread cost.
	rec := s.whole("victim")
	s.must(os.Remove(s.folder(rec).Meta()))
	rec.QueuedAt, rec.Cost.Spend = time.Time{}, 1
	if f := s.audit(s.subject(rec)).Findings; !slices.ContainsFunc(f, func(f Finding) bool {
		return f.File == registryFile && f.Damage == transcript.Altered
	}) {
		t.Errorf("cost in the registry: %+v", f)
	}
}

// transcriptHead is the head of a transcript as it lies there.
func transcriptHead(s *scene, rec thread.Record) thread.TranscriptHead {
	s.Helper()
	text := s.read(s.folder(rec).Transcript())
	return thread.TranscriptHead{Checkpoints: turns, Bytes: int64(len(text)), Hash: hashText([]byte(text))}
}

// TestCrashTail tells lines that a crash left unsigned from those that somebody
// has added, by what the registry knows.
func TestCrashTail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		outcome    thread.Outcome
		lenient    bool
		good, warn bool
	}{
		{"died", hasDied, false, true, true},
		{"completed", completed, false, false, false},
		{"completed, lenient", completed, true, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, newKey(t, 1))
			rec := s.start("victim")
			rec = s.end(rec, s.play(rec), tt.outcome)
			s.editLines(rec, func(l []string) []string { return append(l[:len(l)-1], `{"timestamp":`) }) // no final checkpoint
			subject := s.subject(rec)
			subject.Lenient = tt.lenient
			s.must(os.Remove(s.folder(rec).Meta())) // so nothing vouches for the length
			subject.Row.QueuedAt = time.Time{}      // and none is missed
			report := s.audit(subject)
			if report.Good() != tt.good || (len(report.Warnings) > 0) != tt.warn {
				t.Errorf("findings %+v, warnings %q", report.Findings, report.Warnings)
			}
			if !tt.good && (report.Findings[0].Damage != Unsigned || report.Findings[0].Turn != turns) {
				t.Errorf("findings %+v", report.Findings)
			}
		})
	}
}

// TestWithoutSeal: where no thread of the user has run nothing verifies, however
// lenient the check is.
func TestWithoutSeal(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	rec := s.whole("victim")
	subject := s.subject(rec)
	subject.Lenient, subject.Records = true, records.Local{Home: folder.Home{Dir: s.stateDir}.Always()}
	if report := s.audit(subject); len(report.Findings) < 4 {
		t.Errorf("%+v", report.Findings)
	}
}

// TestUnsigned: files without a signature are not taken for the thread's.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	rec := s.whole("victim")
	s.edit(s.folder(rec).Meta(), `"_signature"`, `"signature"`)
	report := s.audit(s.subject(rec))
	if len(report.Findings) == 0 || report.Findings[0].Damage != Unsigned || report.Meta != nil {
		t.Errorf("%+v", report.Findings)
	}
}
