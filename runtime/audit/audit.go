package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Kinds of damage beside those of transcripts.
const (
	Unsigned   transcript.Damage = "unsigned"    // nobody signed it
	Missing    transcript.Damage = "missing"     // it must be there, and is not
	RolledBack transcript.Damage = "rolled_back" // genuine, and older than what the registry knows
	Unreadable transcript.Damage = "unreadable"
	// LedgerDiffers: the ledger, which nobody signs, has another amount than was signed.
	LedgerDiffers transcript.Damage = "ledger_differs"
)

// Finding is something that does not verify.
type Finding struct {
	File   string            `json:"file"`
	Damage transcript.Damage `json:"damage"`
	Turn   int               `json:"turn,omitempty" jsonschema:"first turn of the transcript that cannot be trusted"`
	Line   int               `json:"line,omitempty" jsonschema:"line of the transcript where it was noticed"`
	Detail string            `json:"detail"`
}

// Report is what was found about one thread.
type Report struct {
	Findings   []Finding
	Warnings   []string          // what was let pass
	Transcript transcript.Report // up to the first damage
	// Meta is thread.json; nil when it cannot be trusted.
	Meta *thread.Meta
}

// Good reports whether everything verifies.
func (r *Report) Good() bool { return len(r.Findings) == 0 }

// Subject is the thread to check.
type Subject struct {
	Row     thread.Record // as it was before any of the records are read
	Records records.Records
	// LedgerSpend is what the ledger says that the thread itself has spent, read
	// after the row; nil when the thread has no budget.
	LedgerSpend *thread.Micros
	Rendering   string // path of the knowledge entry; empty: not looked at
	RenderingID string // id of the knowledge entry
	// Lenient lets pass with a warning what nobody signed: lines after the last
	// checkpoint of a thread that is not known to have died. A signature that does
	// not fit is damage all the same.
	Lenient bool
}

// Thread checks everything there is of a thread. An error says that a file could
// not be read; damage is in the report.
func Thread(s Subject) (*Report, error) {
	a := auditor{Subject: s, Report: &Report{}, left: s.Records.Of(s.Row.ThreadID), seal: s.Records.Seal()}
	a.meta()
	a.ledger()
	for _, part := range []func() error{a.transcript, a.capabilities, a.rendering, a.artifacts} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return a.Report, nil
}

// auditor is one check of a thread.
type auditor struct {
	Subject
	*Report
	left records.Thread
	seal *place.Seal
}

func (a *auditor) find(file string, d transcript.Damage, format string, args ...any) {
	a.Findings = append(a.Findings, Finding{File: file, Damage: d, Detail: fmt.Sprintf(format, args...)})
}

// findTurn is find for a transcript, which turn by turn can be trusted or not.
func (a *auditor) findTurn(turn int, d transcript.Damage, format string, args ...any) {
	a.find(transcriptFile, d, format, args...)
	a.Findings[len(a.Findings)-1].Turn = turn
}

// Names of files in findings.
const (
	metaFile         = "thread.json"
	transcriptFile   = "transcript.jsonl"
	capabilitiesFile = "capabilities.md"
	renderingFile    = "knowledge entry"
	registryFile     = "registry.db"
	ledgerFile       = "budget_ledger.db"
)

// ended reports whether the thread has ended by its row.
func (a *auditor) ended() bool { return a.Row.Status.Terminal() }

// meta checks thread.json. A thread that ended before it was prepared has none.
func (a *auditor) meta() {
	meta, err := a.left.Meta().Read()
	if errors.Is(err, thread.ErrNoMeta) {
		if !a.Row.QueuedAt.IsZero() {
			a.find(metaFile, Missing, "the thread had one")
		}
		return
	}
	if damage, detail := a.metaDamage(err); damage != "" {
		a.find(metaFile, damage, "%s", detail)
		return
	}
	a.compareRow(meta)
	a.Meta = &meta
}

// metaDamage says what is wrong with thread.json by the error of reading it.
func (a *auditor) metaDamage(err error) (transcript.Damage, string) {
	switch {
	case err == nil:
		return "", ""
	case !errors.Is(err, sign.ErrBadSignature):
		return Unreadable, err.Error()
	}
	switch signer := a.left.Meta().Signer(); signer {
	case "":
		return Unsigned, "it carries no signature"
	default:
		if !a.seal.Accepts(signer) {
			return transcript.Foreign, fmt.Sprintf("it is signed by key %.80q", signer)
		}
		return transcript.Altered, "its content is not what was signed"
	}
}

// compareRow holds thread.json against the registry.
func (a *auditor) compareRow(meta thread.Meta) {
	row := a.Row
	switch {
	case meta.ThreadID != row.ThreadID:
		a.find(metaFile, transcript.Spliced, "it is that of thread %.80q", meta.ThreadID)
	case meta.Kind != row.Kind || meta.Directive != row.Directive || meta.ParentID != row.ParentID:
		a.find(metaFile, transcript.Altered, "kind, directive or parent are not those of the registry")
	case meta.ContinuationOf != row.ContinuationOf || rootOf(meta.ChainRootID, row) != rootOf(row.ChainRootID, row):
		a.find(metaFile, transcript.Altered, "its place in its chain is not that of the registry")
	case a.ended() && !meta.Status.Terminal():
		a.find(metaFile, RolledBack, "it says %s, and the registry %s", meta.Status, row.Status)
	case meta.Status.Terminal() && !a.ended():
		a.find(metaFile, transcript.Altered, "it says %s, and the registry %s", meta.Status, row.Status)
	case a.ended() && (meta.Status != row.Status || meta.Cost != row.Cost):
		a.find(metaFile, RolledBack, "it says %s after %d turns for %s, and the registry %s after %d turns for %s",
			meta.Status, meta.Cost.Turns, meta.Cost.Spend, row.Status, row.Cost.Turns, row.Cost.Spend)
	case a.ended() && meta.Transcript == nil:
		a.find(metaFile, transcript.Stripped, "it does not say how long the transcript is")
	}
}

// ledger holds what the ledger says of the money against the row, which is held
// against what was signed. The ledger hears of the end before the row does.
func (a *auditor) ledger() {
	began := !a.Row.QueuedAt.IsZero() || !a.Row.AdmittedAt.IsZero() || a.Row.Cost.Spend > 0
	if a.LedgerSpend == nil && began { // it has a budget before it is queued
		a.find(ledgerFile, Missing, "it has no budget of the thread, which has spent %s", a.Row.Cost.Spend)
	}
	if a.LedgerSpend == nil || !a.ended() || *a.LedgerSpend == a.Row.Cost.Spend {
		return
	}
	a.find(ledgerFile, LedgerDiffers, "it says that the thread itself has spent %s, and it ended after %s", *a.LedgerSpend, a.Row.Cost.Spend)
}

// transcript checks the record of what happened.
func (a *auditor) transcript() error {
	var head *thread.TranscriptHead
	if a.Meta != nil {
		head = a.Meta.Transcript
	}
	report, err := transcript.Verify(a.left.Transcript(), a.seal, head)
	a.Transcript = report
	if tampered, ok := errors.AsType[*transcript.TamperError](err); ok {
		a.Findings = append(a.Findings, Finding{
			File: transcriptFile, Damage: tampered.Damage, Turn: tampered.Turn, Line: tampered.Line, Detail: tampered.Detail,
		})
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if head != nil || a.Row.Cost != (thread.Cost{}) {
			a.findTurn(1, Missing, "the thread had one")
		}
		return nil
	}
	if err != nil {
		return err
	}
	return a.compareTranscript(head)
}

// compareTranscript holds a transcript that is consistent in itself against the
// registry. A turn reaches the registry just before the transcript.
func (a *auditor) compareTranscript(head *thread.TranscriptHead) error {
	r := a.Transcript
	switch {
	case r.ThreadID != "" && r.ThreadID != a.Row.ThreadID:
		a.findTurn(1, transcript.Spliced, "it is that of thread %.80q", r.ThreadID)
		return nil
	case r.Turns < a.Row.Cost.Turns-1:
		a.findTurn(r.Turns+1, transcript.Truncated, "it ends in turn %d, and the registry knows of %d turns", r.Turns, a.Row.Cost.Turns)
		return nil
	case !a.ended():
		return nil
	}
	outcome, cost, err := transcript.LastOutcome(a.left.Transcript())
	if err != nil {
		return fmt.Errorf("read the outcome of %s: %w", a.Row.ThreadID, err)
	}
	switch {
	case outcome == nil:
		a.findTurn(max(1, r.Turns), transcript.Truncated, "it does not say how the thread ended; the registry says %s", a.Row.Status)
	case outcome.State != a.Row.Status:
		a.findTurn(max(1, r.Turns), RolledBack, "it says that the thread ended as %s; the registry says %s", outcome.State, a.Row.Status)
	case !sameOutcome(outcome, a.Row.Outcome):
		a.find(registryFile, transcript.Altered, "its result of the thread is not that of the transcript")
	case *cost != a.Row.Cost:
		a.find(registryFile, transcript.Altered, "its cost of the thread, %s, is not that of the transcript, %s", a.Row.Cost.Spend, cost.Spend)
	case head == nil && r.UnsignedBytes()+r.TornBytes > 0:
		a.tail()
	}
	if outcome != nil {
		a.compareSuccessor(a.continuedBy(*outcome, head))
	}
	return nil
}

// sameOutcome compares what a transcript says of an end with what the registry
// does, which is what everybody is told.
func sameOutcome(said, known *thread.Outcome) bool {
	a, errA := json.Marshal(said)
	b, errB := json.Marshal(known)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// tail judges bytes after the last checkpoint that no thread.json vouches for.
func (a *auditor) tail() {
	r := a.Transcript
	left := fmt.Sprintf("%d bytes after the last checkpoint are not signed", r.UnsignedBytes()+r.TornBytes)
	if died(a.Row) {
		a.Warnings = append(a.Warnings, transcriptFile+": "+left+"; the thread died, so its lines are taken up to the last complete one")
		return
	}
	if a.Lenient {
		a.Warnings = append(a.Warnings, transcriptFile+": "+left)
		return
	}
	a.findTurn(r.LastTurn+1, Unsigned, "%s, and the thread is not known to have died", left)
}

// died reports whether the registry knows that the thread's process was gone
// before the thread had ended.
func died(row thread.Record) bool {
	return row.Outcome != nil && row.Outcome.Error != nil && row.Outcome.Error.Code == thread.CodeDied
}
