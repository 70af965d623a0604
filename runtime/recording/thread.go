package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// The files of a thread, below its folder.
const (
	metaFile         = "thread.json"
	transcriptFile   = "transcript.jsonl"
	capabilitiesFile = "capabilities.md"
	settingsFile     = "settings.json"
	expectedFile     = "expected.json"
	artifactFolder   = "artifacts"
)

// Settings are what decided about a thread beside its directive.
type Settings struct {
	Models []Model       `json:"models"` // that were asked, in the order in which they were first
	Limits thread.Limits `json:"limits"`
	// Hash is of all the settings that the thread's process was handed, as in
	// thread.json; empty: it read them itself.
	Hash string `json:"settings_hash,omitempty"`
}

// Model is one that a thread asked, with what bounded its calls.
type Model struct {
	Ref           string    `json:"model"` // "provider/model"
	ContextWindow int       `json:"context_window,omitempty"`
	MaxOutput     int       `json:"max_output"`
	Price         llm.Price `json:"price"` // micro-dollars per million tokens
}

// Thread is one of a recording.
type Thread struct {
	Entry
	Meta         thread.Meta
	Settings     Settings
	Expected     Observed
	Capabilities []byte // without a signature; nil: it had none yet
	// Artifacts by name: the SHA-256 of the content with an extension.
	Artifacts map[string][]byte

	said []byte
}

// Threads are those of the recording, the one that was asked for first.
func (r *Recording) Threads() ([]*Thread, error) {
	threads := make([]*Thread, len(r.Manifest.Threads))
	for i, e := range r.Manifest.Threads {
		t, err := r.thread(e)
		if err != nil {
			return nil, err
		}
		threads[i] = t
	}
	return threads, nil
}

func (r *Recording) thread(e Entry) (*Thread, error) {
	t := &Thread{Entry: e, Artifacts: map[string][]byte{}}
	for name, to := range map[string]any{metaFile: &t.Meta, settingsFile: &t.Settings, expectedFile: &t.Expected} {
		data, found := r.files[path.Join(e.Dir, name)]
		if !found {
			return nil, damaged("%s of %s is missing", name, e.ThreadID)
		}
		if err := json.Unmarshal(data, to); err != nil {
			return nil, damaged("%s of %s: %v", name, e.ThreadID, err)
		}
	}
	t.said, t.Capabilities = r.files[path.Join(e.Dir, transcriptFile)], r.files[path.Join(e.Dir, capabilitiesFile)]
	for name, data := range r.files {
		if artifact, is := strings.CutPrefix(name, path.Join(e.Dir, artifactFolder)+"/"); is {
			t.Artifacts[artifact] = data
		}
	}
	return t, nil
}

// Source is the transcript.
func (t *Thread) Source() records.Source { return source(t.said) }

// Events are those of the transcript.
func (t *Thread) Events() iter.Seq2[thread.Event, error] { return transcript.Events(t.Source()) }

// source is a record in memory.
type source []byte

// Open implements [records.Source].
func (s source) Open() (records.Reader, error) { return reader{bytes.NewReader(s), int64(len(s))}, nil }

// Stamp implements [records.Source].
func (s source) Stamp() (records.Stamp, error) { return records.Stamp{Size: int64(len(s))}, nil }

// Where implements [records.Source].
func (s source) Where() string { return transcriptFile }

type reader struct {
	*bytes.Reader
	size int64
}

func (r reader) Size() (int64, error) { return r.size, nil }
func (r reader) Close() error         { return nil }

// check holds what the files say against the manifest.
func (r *Recording) check() error {
	if n := len(r.Manifest.Threads); n == 0 || n > maxThreads {
		return damaged("it has %d threads", n)
	}
	known := map[string]bool{}
	for i, e := range r.Manifest.Threads {
		if err := r.checkThread(i, e, known); err != nil {
			return err
		}
	}
	for i, used := range r.Manifest.Items {
		if err := checkItem(i, used); err != nil {
			return err
		}
		if used.File != "" {
			known[used.File] = true
		}
	}
	for name := range r.files {
		if !known[name] {
			return damaged("%q belongs to no thread", name)
		}
	}
	for name := range known {
		if _, found := r.files[name]; !found {
			return damaged("%q is missing", name)
		}
	}
	return nil
}

func checkItem(i int, used Item) error {
	if used.Kind != item.Directive && used.Kind != item.Knowledge {
		return damaged("an item of the kind %.20q", used.Kind)
	}
	if err := item.CheckID(used.ID); err != nil {
		return damaged("%v", err)
	}
	if used.File != "" && used.File != itemFile(i) {
		return damaged("the item %s is in %q", used.ID, used.File)
	}
	return nil
}

// itemFile is the member that has an item.
func itemFile(i int) string { return fmt.Sprintf("items/%d", i+1) }

// threadDir is the folder of a thread.
func threadDir(i int) string { return fmt.Sprintf("threads/%d", i+1) }

func (r *Recording) checkThread(i int, e Entry, known map[string]bool) error {
	if _, err := thread.ParseID(string(e.ThreadID)); err != nil {
		return damaged("%v", err)
	}
	for _, before := range r.Manifest.Threads[:i] {
		if before.ThreadID == e.ThreadID {
			return damaged("thread %s is there twice", e.ThreadID)
		}
	}
	if e.Dir != threadDir(i) {
		return damaged("thread %s is in %.60q", e.ThreadID, e.Dir)
	}
	t, err := r.thread(e)
	if err != nil {
		return err
	}
	for _, name := range []string{metaFile, settingsFile, expectedFile, transcriptFile} {
		known[path.Join(e.Dir, name)] = true
	}
	if t.Capabilities != nil {
		known[path.Join(e.Dir, capabilitiesFile)] = true
	}
	for name, data := range t.Artifacts {
		if err := checkArtifact(name, data); err != nil {
			return err
		}
		known[path.Join(e.Dir, artifactFolder, name)] = true
	}
	return errors.Join(t.checkMeta(), t.checkTranscript())
}

func checkArtifact(name string, data []byte) error {
	sum := sha256.Sum256(data)
	if hash, _, _ := strings.Cut(name, "."); hash != hex.EncodeToString(sum[:]) || !fs.ValidPath(name) || strings.Contains(name, "/") {
		return damaged("the artifact %.80q has another content", name)
	}
	return nil
}

// checkMeta holds thread.json against the manifest.
func (t *Thread) checkMeta() error {
	m := t.Meta
	switch {
	case m.ThreadID != t.ThreadID || m.Directive != t.Directive || m.Status != t.Status:
		return damaged("thread.json of %s is not that of the manifest", t.ThreadID)
	case m.Kind != thread.KindDirective:
		return damaged("%s is a run of a tool", t.ThreadID)
	case t.Ended != m.Status.Terminal() || t.Ended && (m.Outcome == nil || m.Outcome.State != m.Status):
		return damaged("thread.json of %s does not say how it ended", t.ThreadID)
	case m.Version > thread.MetaVersion:
		return damaged("thread.json of %s is of version %d, which this rye-mcp does not know", t.ThreadID, m.Version)
	}
	if err := item.CheckID(m.Directive); err != nil {
		return damaged("%v", err)
	}
	return nil
}

// checkTranscript reads every line of the transcript.
func (t *Thread) checkTranscript() error {
	seq := int64(0)
	for e, err := range t.Events() {
		if err != nil {
			return damaged("transcript of %s: %v", t.ThreadID, err)
		}
		if seq++; e.Seq != seq || e.ThreadID != t.ThreadID {
			return damaged("transcript of %s: line %d is event %d of %.80q", t.ThreadID, seq, e.Seq, e.ThreadID)
		}
	}
	return nil
}
