package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
)

// Left is what a thread has left, verified.
type Left struct {
	Meta         thread.Meta
	Transcript   []byte // up to the end, or to the last checkpoint of one that runs
	Head         thread.TranscriptHead
	Capabilities []byte            // without a signature
	Artifacts    map[string][]byte // by name
}

// Events are those of the transcript.
func (l Left) Events() iter.Seq2[thread.Event, error] { return transcript.Events(source(l.Transcript)) }

// Used is an item that threads were made of.
type Used struct {
	Kind    item.Kind
	ID      string
	Hash    string
	Content []byte // nil: it is not what it was any more
}

// Build makes a recording, out of which secrets are taken and in which paths are short.
func Build(threads []Left, items []Used, r Redactor) (*Recording, error) {
	b := builder{Redactor: r, Recording: &Recording{
		Manifest: Manifest{Threads: []Entry{}, Items: []Item{}}, files: map[string][]byte{}, taken: map[string]int{},
	}}
	for i, left := range threads {
		if err := b.add(i, left); err != nil {
			return nil, fmt.Errorf("record thread %s: %w", left.Meta.ThreadID, err)
		}
	}
	for i, used := range items {
		entry := Item{Kind: used.Kind, ID: used.ID, Hash: used.Hash}
		if used.Content != nil {
			entry.File = itemFile(i)
			b.put(entry.File, used.Content)
		}
		b.Manifest.Items = append(b.Manifest.Items, entry)
	}
	b.Manifest.Files = b.list()
	return b.Recording, b.check()
}

type builder struct {
	Redactor
	*Recording
	renamed *strings.Replacer // of artifacts whose content has changed
}

// put takes a file in as it may be seen.
func (b *builder) put(name string, data []byte) []byte {
	clean, taken := b.Text(data)
	if b.renamed != nil {
		clean = []byte(b.renamed.Replace(string(clean)))
	}
	b.files[name] = clean
	if taken > 0 {
		b.taken[name] = taken
	}
	return clean
}

func (b *builder) add(i int, left Left) error {
	meta := left.Meta
	meta.Type, meta.Place = "", "" // it is at home nowhere
	dir := threadDir(i)
	b.addArtifacts(dir, left.Artifacts)
	var whole bytes.Buffer
	if err := transcript.WithoutStreams(source(left.Transcript), &whole); err != nil {
		return err
	}
	said := b.put(path.Join(dir, transcriptFile), whole.Bytes())
	if left.Capabilities != nil {
		b.put(path.Join(dir, capabilitiesFile), left.Capabilities)
	}
	settings, err := settingsOf(meta, said)
	if err != nil {
		return err
	}
	expected := Observe(transcript.Events(source(said)))
	for name, value := range map[string]any{metaFile: meta, settingsFile: settings, expectedFile: expected} {
		data, err := encode(value)
		if err != nil {
			return err
		}
		b.put(path.Join(dir, name), data)
	}
	b.renamed = nil
	b.Manifest.Threads = append(b.Manifest.Threads, Entry{
		ThreadID: meta.ThreadID, Directive: meta.Directive, Status: meta.Status, Ended: meta.Status.Terminal(), Dir: dir, Transcript: left.Head,
	})
	return nil
}

// encode is JSON as people read it, the same for the same value.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// addArtifacts takes large results in. One out of which something was taken has another
// hash, and so another name, by which everything else refers to it.
func (b *builder) addArtifacts(dir string, artifacts map[string][]byte) {
	var renamed []string
	for _, name := range slices.Sorted(maps.Keys(artifacts)) {
		clean, taken := b.Text(artifacts[name])
		if !bytes.Equal(clean, artifacts[name]) {
			was, ext, _ := strings.Cut(name, ".")
			sum := sha256.Sum256(clean)
			hash := hex.EncodeToString(sum[:])
			name = hash + "." + ext
			renamed = append(renamed, was, hash, artifact.Ref(was), artifact.Ref(hash))
		}
		name = path.Join(dir, artifactFolder, name)
		b.files[name] = clean
		if taken > 0 {
			b.taken[name] = taken
		}
	}
	if renamed != nil {
		b.renamed = strings.NewReplacer(renamed...)
	}
}

// settingsOf is what decided about a thread, as far as its transcript and thread.json say.
func settingsOf(meta thread.Meta, said []byte) (Settings, error) {
	s := Settings{Models: []Model{}, Limits: meta.Limits, Hash: meta.SettingsHash}
	for e, err := range transcript.Events(source(said)) {
		if err != nil {
			return s, err
		}
		if e.Type != thread.EventCognitionRequest {
			continue
		}
		p, err := transcript.Decode[transcript.CognitionRequest](e)
		if err != nil {
			return s, err
		}
		i := slices.IndexFunc(s.Models, func(m Model) bool { return m.Ref == p.Model })
		if i < 0 {
			i = len(s.Models)
			s.Models = append(s.Models, Model{Ref: p.Model, Price: p.Price, ContextWindow: p.ContextWindow})
		}
		s.Models[i].MaxOutput = max(s.Models[i].MaxOutput, p.MaxTokens)
	}
	return s, nil
}

// Taken is how many secrets were taken out, by file.
func (r *Recording) Taken() map[string]int { return maps.Clone(r.taken) }

// Item is the content of an item, as far as it is in the recording.
func (r *Recording) Item(kind item.Kind, id string) (Item, []byte, bool) {
	for _, used := range r.Manifest.Items {
		if used.Kind == kind && used.ID == id {
			return used, r.files[used.File], used.File != ""
		}
	}
	return Item{}, nil, false
}

// Expect makes what was observed now what a thread is held against from now on.
func (r *Recording) Expect(t *Thread, now Observed) error {
	data, err := encode(now)
	if err != nil {
		return err
	}
	r.files[path.Join(t.Dir, expectedFile)] = data
	r.Manifest.Files = r.list()
	return nil
}
