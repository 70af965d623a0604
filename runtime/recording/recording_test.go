package recording_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
)

const id thread.ID = "task-1"

func newKey(t testing.TB) *sign.Key {
	t.Helper()
	key, err := sign.Generate(t.TempDir(), false, strings.NewReader(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// left is what a small thread has left. Each text of it holds what is given.
func left(t testing.TB, planted string) recording.Left {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }
	content := "a long result " + planted
	hash := hashOf([]byte(content))
	file := records.File(filepath.Join(t.TempDir(), "transcript.jsonl"))
	w, err := transcript.Open(file, id, transcript.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	outcome := thread.Outcome{State: thread.Completed, Result: "done " + planted, Outputs: map[string]any{"a": planted}}
	for _, e := range []struct {
		t       thread.EventType
		payload any
	}{
		{thread.EventToolsOffered, transcript.ToolsOffered{Tools: []llm.Tool{{Name: "look", Description: planted, Schema: json.RawMessage(`{"type":"object"}`)}}}},
		{thread.EventSystemPrompt, transcript.SystemPrompt{Text: "be kind " + planted}},
		{thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: llm.Text(llm.User, "go "+planted).Blocks}},
		{thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "p/m", MaxTokens: 100, ContextWindow: 1000}},
		{thread.EventTokenDelta, transcript.TokenDelta{Turn: 1, Type: llm.TextBlock, Text: "I say " + planted[:len(planted)/2]}},
		{thread.EventTokenDelta, transcript.TokenDelta{Turn: 1, Type: llm.TextBlock, Text: planted[len(planted)/2:]}},
		{thread.EventCognitionOut, transcript.CognitionOut{Turn: 1, Blocks: transcript.Blocks{
			{Type: llm.ToolUseBlock, ToolCallID: "c1", ToolName: "look", Input: json.RawMessage(`{"at":"` + planted + `"}`)},
		}}},
		{thread.EventToolCallResult, transcript.ToolCallResult{Turn: 1, CallID: "c1", Tool: "look", Text: "artifact " + artifact.Ref(hash) + " " + planted}},
	} {
		if err := w.Append(e.t, e.payload); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(outcome, thread.Cost{Turns: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(string(file))
	if err != nil {
		t.Fatal(err)
	}
	return recording.Left{
		Meta: thread.Meta{
			Version: thread.MetaVersion, ThreadID: id, Kind: thread.KindDirective, Directive: "task", DirectiveHash: "d", DirectivePath: "/home/ada/project/x.md",
			Status: thread.Completed, Outcome: &outcome, Model: "p/m", Inputs: map[string]any{"in": planted}, CreatedAt: now(),
		},
		Transcript: said, Capabilities: []byte("# Capabilities of task-1\n\n" + planted),
		Artifacts: map[string][]byte{hash + ".txt": []byte(content)},
	}
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func build(t testing.TB, planted string, r recording.Redactor) *recording.Recording {
	t.Helper()
	made, err := recording.Build([]recording.Left{left(t, planted)}, []recording.Used{
		{Kind: item.Directive, ID: "task", Hash: "d", Content: []byte("# Task\n" + planted)},
		{Kind: item.Knowledge, ID: "gone", Hash: "e"},
	}, r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func written(t testing.TB, r *recording.Recording, key *sign.Key) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, key); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(data []byte) (*recording.Recording, error) {
	return recording.Read(bytes.NewReader(data), int64(len(data)))
}

// The same threads make the same bytes, and what is read is what was written.
func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	data := written(t, build(t, "x", recording.Redactor{}), key)
	if again := written(t, build(t, "x", recording.Redactor{}), key); !bytes.Equal(data, again) {
		t.Error("the same thread makes other bytes")
	}
	r, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Signer.Equal(key.Public()) || len(r.Manifest.Threads) != 1 || r.Manifest.Items[1].File != "" {
		t.Errorf("%+v", r.Manifest)
	}
	threads, err := r.Threads()
	if err != nil {
		t.Fatal(err)
	}
	got := threads[0]
	want := recording.Call{Turn: 1, Tool: "look", Input: `{"at":"x"}`, Result: "ok"}
	if len(got.Expected.Calls) != 1 || got.Expected.Calls[0] != want || got.Expected.Outcome.Result != "done x" || got.Expected.Request.System != "be kind x" {
		t.Errorf("%+v", got.Expected)
	}
	if m := got.Settings.Models; len(m) != 1 || m[0].Ref != "p/m" || m[0].ContextWindow != 1000 || m[0].MaxOutput != 100 {
		t.Errorf("%+v", got.Settings)
	}
	if err := r.Expect(got, recording.Observed{}); err != nil {
		t.Fatal(err)
	}
	if r, err = read(written(t, r, key)); err != nil {
		t.Fatal(err)
	}
	if threads, err = r.Threads(); err != nil || threads[0].Expected.Outcome.Result != "" {
		t.Errorf("%+v, %v", threads[0].Expected, err)
	}
}

// TestAttackSecretsInRecordings: keys have got into every text that a thread leaves, and into the pieces in which an answer arrived. Those of the key variables, and what looks like a key, are in no file of its recording.
func TestAttackSecretsInRecordings(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	const known = "Zq7!known-to-the-exporter"
	vault := secret.New(map[string]string{"PROVIDER_KEY": known})
	for name, planted := range map[string]string{
		"known": known, "anthropic": "sk-" + "ant-api03-" + strings.Repeat("a1b2", 6), "openai": "sk-proj-abcdefghijklmnopqrst",
		"github": "ghp_abcdefghijklmnopqrstuvwxyz0123", "fine-grained": "github_pat_abcdefghijklmnopqrstuvwx", "aws": "AKIAABCDEFGHIJKLMNOP",
		"google": "AIzaabcdefghijklmnopqrstuvwxyz0123456", "slack": "xoxb-123456789012-abcdef", "bearer": "Bearer abcdefghijklmnop.qrst",
		"header": "Authorization: Basic YWRhOnBhc3N3b3Jk", "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3In0.abcdefghijklmnop",
	} {
		data := written(t, build(t, planted, recording.Redactor{Secrets: vault}), key)
		r, err := read(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		secretPart := planted[strings.LastIndexAny(planted, " ")+1:]
		for file, text := range unzip(t, data) {
			for _, part := range []string{secretPart, planted[len(planted)/2:]} {
				if bytes.Contains(text, []byte(part)) {
					t.Errorf("%s: %s has %q: %s", name, file, part, text)
				}
			}
		}
		if len(r.Manifest.Files) < 7 {
			t.Errorf("%s: %+v", name, r.Manifest.Files)
		}
		for _, f := range r.Manifest.Files {
			if !strings.HasSuffix(f.Name, "settings.json") && !strings.HasSuffix(f.Name, "expected.json") && f.Taken == 0 {
				t.Errorf("%s: nothing was taken out of %s", name, f.Name)
			}
		}
	}
}

// A private key is many lines, in JSON one.
func TestPrivateKey(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
	quoted, err := json.Marshal("key: " + pem)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{pem, string(quoted)} {
		clean, taken := recording.Redactor{}.Text([]byte(text))
		if taken != 1 || bytes.Contains(clean, []byte("b3Blbn")) {
			t.Errorf("%s", clean)
		}
	}
	if clean, _ := (recording.Redactor{}).Text(quoted); !json.Valid(clean) {
		t.Errorf("no JSON any more: %s", clean)
	}
}

func TestShortPaths(t *testing.T) {
	t.Parallel()
	r := recording.Redactor{Paths: []recording.Path{{"/home/ada/project", "{project}"}, {"/home/ada", "~"}}}
	for text, want := range map[string]string{
		"/home/ada/project/a.go":             "{project}/a.go",
		`{"path":"/home/ada/project"}`:       `{"path":"{project}"}`,
		"in /home/ada/project.":              "in {project}.",
		"/home/ada/project-two/a, /home/ada": "~/project-two/a, ~",
		"/mnt/home/adam":                     "/mnt/home/adam",
		"/mnt/home/ada":                      "/mnt/home/ada",
	} {
		if got, _ := r.Text([]byte(text)); string(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func unzip(t testing.TB, data []byte) map[string][]byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range archive.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(from); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// member is one of a hostile archive.
type member struct {
	zip.FileHeader
	data []byte
}

// packed is an archive of a good one's members, changed.
func packed(t testing.TB, files map[string][]byte, more ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, data := range files {
		more = append(more, member{zip.FileHeader{Name: name, Method: zip.Deflate}, data})
	}
	for _, m := range more {
		to, err := w.CreateHeader(&m.FileHeader)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(m.data); err != nil && !strings.HasSuffix(m.Name, "/") {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func linked(name string, mode fs.FileMode) member {
	m := member{zip.FileHeader{Name: name}, []byte("/etc/passwd")}
	m.SetMode(mode | 0o777)
	return m
}

// resigned is the manifest of files with another list, signed again.
func resigned(t testing.TB, files map[string][]byte, key *sign.Key, change func(*recording.Manifest)) {
	t.Helper()
	var m recording.Manifest
	if err := json.Unmarshal(files["manifest.json"], &m); err != nil {
		t.Fatal(err)
	}
	for i, f := range m.Files {
		m.Files[i].Size, m.Files[i].SHA256 = int64(len(files[f.Name])), hashOf(files[f.Name])
	}
	change(&m)
	var err error
	if files["manifest.json"], err = sign.EncodeSigned(m, key); err != nil {
		t.Fatal(err)
	}
}

// TestAttackHostileArchive: an archive has links, devices, names that lead elsewhere, members twice, more than it says, or a manifest that lies. It is refused before anything of it is used.
func TestAttackHostileArchive(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	good := written(t, build(t, "x", recording.Redactor{}), key)
	plain := func(name string) member { return member{zip.FileHeader{Name: name}, []byte("x")} }
	for name, more := range map[string]member{
		"link": linked("threads/1/artifacts/l", fs.ModeSymlink), "device": linked("d", fs.ModeDevice|fs.ModeCharDevice), "pipe": linked("p", fs.ModeNamedPipe),
		"folder": plain("threads/2/"), "up": plain("threads/../../x"), "absolute": plain("/etc/x"), "windows": plain(`..\x`), "drive": plain("C:/x"),
		"control": plain("threads/1/\x1b[2J"), "newline": plain("a\nb"), "empty": plain(""), "dot": plain("."), "twice": plain("threads/1/thread.json"),
		"case": plain("THREADS/1/thread.json"), "stranger": plain("threads/1/more"), "long": plain(strings.Repeat("n", 300)), "utf8": plain("th\u202ereads"),
	} {
		if r, err := read(packed(t, unzip(t, good), more)); err == nil {
			t.Errorf("%s: taken as %+v", name, r.Manifest)
		}
	}
	for name, change := range map[string]func(files map[string][]byte, m *recording.Manifest){
		"content":      func(f map[string][]byte, _ *recording.Manifest) { f["threads/1/thread.json"] = []byte(`{}`) },
		"size":         func(_ map[string][]byte, m *recording.Manifest) { m.Files[0].Size++ },
		"negative":     func(_ map[string][]byte, m *recording.Manifest) { m.Files[0].Size = -1 },
		"listed twice": func(_ map[string][]byte, m *recording.Manifest) { m.Files = append(m.Files, m.Files[0]) },
		"not there":    func(f map[string][]byte, m *recording.Manifest) { delete(f, m.Files[0].Name) },
		"no threads":   func(_ map[string][]byte, m *recording.Manifest) { m.Threads = nil },
		"thread twice": func(_ map[string][]byte, m *recording.Manifest) { m.Threads = append(m.Threads, m.Threads[0]) },
		"another id":   func(_ map[string][]byte, m *recording.Manifest) { m.Threads[0].ThreadID = "other-1" },
		"id leads out": func(_ map[string][]byte, m *recording.Manifest) { m.Threads[0].ThreadID = "../../x" },
		"folder":       func(_ map[string][]byte, m *recording.Manifest) { m.Threads[0].Dir = "../x" },
		"another folder": func(f map[string][]byte, m *recording.Manifest) {
			moved := func(name string) string { return strings.Replace(name, "threads/1/", "threads/9/", 1) }
			for name, data := range f {
				delete(f, name)
				f[moved(name)] = data
			}
			for i, file := range m.Files {
				m.Files[i].Name = moved(file.Name)
			}
			m.Threads[0].Dir = "threads/9"
		},
		"state":          func(_ map[string][]byte, m *recording.Manifest) { m.Threads[0].Status = thread.Error },
		"not ended":      func(_ map[string][]byte, m *recording.Manifest) { m.Threads[0].Ended = false },
		"item leads out": func(_ map[string][]byte, m *recording.Manifest) { m.Items[0].ID = "../../x" },
		"item elsewhere": func(_ map[string][]byte, m *recording.Manifest) { m.Items[0].File = "threads/1/thread.json" },
		"kind of item":   func(_ map[string][]byte, m *recording.Manifest) { m.Items[0].Kind = item.Tool },
		"version":        func(_ map[string][]byte, m *recording.Manifest) { m.Version = 2 },
		"type":           func(_ map[string][]byte, m *recording.Manifest) { m.Type = "rye-mcp/thread-receipt" },
		"key":            func(_ map[string][]byte, m *recording.Manifest) { m.Signer.PublicKey = "none" },
	} {
		files := unzip(t, good)
		resigned(t, files, key, func(m *recording.Manifest) { change(files, m) })
		if _, err := read(packed(t, files)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// The content of files is checked as well, since a signer can lie.
func TestHostileContent(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	good := written(t, build(t, "x", recording.Redactor{}), key)
	for name, change := range map[string]func(files map[string][]byte){
		"torn": func(f map[string][]byte) {
			f["threads/1/transcript.jsonl"] = bytes.TrimSuffix(f["threads/1/transcript.jsonl"], []byte("\n"))
		},
		"no event": func(f map[string][]byte) { f["threads/1/transcript.jsonl"] = []byte("[]\n") },
		"another thread": func(f map[string][]byte) {
			f["threads/1/transcript.jsonl"] = bytes.ReplaceAll(f["threads/1/transcript.jsonl"], []byte("task-1"), []byte("task-2"))
		},
		"missing line": func(f map[string][]byte) {
			_, f["threads/1/transcript.jsonl"], _ = bytes.Cut(f["threads/1/transcript.jsonl"], []byte("\n"))
		},
		"meta":     func(f map[string][]byte) { f["threads/1/thread.json"] = []byte("[") },
		"expected": func(f map[string][]byte) { f["threads/1/expected.json"] = []byte("[]") },
		"artifact": func(f map[string][]byte) {
			for file := range f {
				if strings.Contains(file, "artifacts") {
					f[file] = []byte("other")
				}
			}
		},
	} {
		files := unzip(t, good)
		change(files)
		resigned(t, files, key, func(*recording.Manifest) {})
		var damage *recording.DamageError
		if _, err := read(packed(t, files)); !errors.As(err, &damage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	files := unzip(t, good)
	files["manifest.json"] = bytes.Replace(files["manifest.json"], []byte(`"task"`), []byte(`"tusk"`), 1)
	if _, err := read(packed(t, files)); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("a manifest that was changed: %v", err)
	}
	for cut := range good {
		if cut%37 == 0 {
			if _, err := read(good[:cut]); err == nil {
				t.Fatalf("cut after %d of %d bytes: taken", cut, len(good))
			}
		}
	}
}

// TestAttackZipBomb: a small archive unpacks to gigabytes of zeros, and says so or does not. Nothing is unpacked beyond what its header says, and no more than the bounds.
func TestAttackZipBomb(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	good := written(t, build(t, "x", recording.Redactor{}), key)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	to, err := w.CreateHeader(&zip.FileHeader{Name: "zeros", Method: zip.Deflate})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(to, zeros{}, 300<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := read(b.Bytes()); err == nil || !strings.Contains(err.Error(), "unpacks to more than") {
		t.Errorf("%v", err)
	}
	// A member that is longer than it says: its size is changed in the directory.
	files := unzip(t, good)
	const shown = "threads/1/thread.json"
	lying := packed(t, files)
	at := bytes.LastIndex(lying, []byte(shown)) - 46 + 24 // APPNOTE 4.3.12: the uncompressed size
	lying[at]--
	if _, err := read(lying); err == nil {
		t.Error("a size that lies was taken")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// FuzzRead: whatever is read is refused, or as it says.
func FuzzRead(f *testing.F) {
	key := newKey(f)
	good := written(f, build(f, "x", recording.Redactor{}), key)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(packed(f, unzip(f, good), linked("l", fs.ModeSymlink)))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := read(data)
		if err != nil {
			return
		}
		if _, err := r.Threads(); err != nil {
			t.Fatalf("what was checked cannot be read: %v", err)
		}
		if !r.Signer.Equal(key.Public()) && bytes.Contains(data, []byte(key.Fingerprint())) {
			t.Fatal(fmt.Errorf("another key: %s", r.Signer.Fingerprint()))
		}
	})
}
