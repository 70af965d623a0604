package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/process/guesttest"
)

// A check that does not come back is reported and does not keep the others; the
// findings come in the order of the checks, and only so many run at once.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hung := make(chan struct{})
	var running, most atomic.Int32
	quick := func(context.Context) []finding {
		now := running.Add(1)
		defer running.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			continue
		}
		return []finding{okf("fine"), warnf("do", "odd")}
	}
	checks := []check{{"hangs", func(context.Context) []finding {
		defer close(hung)
		<-release
		return nil
	}}}
	for range 3 * maxChecking {
		checks = append(checks, check{"quick", quick})
	}
	found := diagnose(t.Context(), checks, 20*time.Millisecond)
	close(release)
	<-hung
	if len(found) != 1+2*3*maxChecking || found[0].Check != "hangs" || found[0].Level != levelFail ||
		!strings.Contains(found[0].Detail, "no answer within 20ms") {
		t.Errorf("%d findings, the first %+v", len(found), found[0])
	}
	if found[1] != (finding{Check: "quick", Level: levelOK, Detail: "fine"}) || most.Load() > maxChecking {
		t.Errorf("second finding %+v, %d at once", found[1], most.Load())
	}
}

// testDoctor is a doctor of an empty project.
func testDoctor(t *testing.T) *doctor {
	t.Helper()
	dir := realDir(t)
	project := filepath.Join(dir, "project")
	if err := os.MkdirAll(filepath.Join(project, ".ai"), 0o700); err != nil {
		t.Fatal(err)
	}
	return newDoctor(testSystem(project, map[string]string{"USER_SPACE": filepath.Join(dir, "user")}), options{}, project)
}

func TestDoctorStateFolder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		make  func(dir string) error
		level level
		says  string
	}{
		{"none", func(string) error { return nil }, levelOK, "none yet"},
		{"a file above it", func(dir string) error { return os.WriteFile(filepath.Dir(dir), nil, 0o600) }, levelFail, "is not a folder"},
		{"a file", func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.WriteFile(dir, nil, 0o600))
		}, levelWarn, "is not a folder"},
		{"a link", func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.Symlink("/", dir))
		}, levelWarn, "symbolic link"},
		{"open to others", func(dir string) error { return errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o755)) }, levelWarn, "mode 0755"},
		{"unreadable", func(dir string) error { return errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0)) }, levelFail, "cannot be read and written"},
		{"unreadable above", func(dir string) error {
			return errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(filepath.Dir(dir), 0))
		}, levelFail, "permission denied"},
		{"as it should be", func(dir string) error { return os.MkdirAll(dir, 0o700) }, levelOK, "threads"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := testDoctor(t)
			dir := placetest.Dir(d.project)
			if err := tt.make(dir); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(filepath.Dir(dir), 0o700) })
			var found []finding
			look := func() { found = d.stateFolder(t.Context()) }
			if !strings.HasPrefix(tt.name, "unreadable") {
				look()
			} else if !asGuest(t, look) {
				t.Skip("root can read everything, and only Linux has a thread of it become another user")
			}
			if len(found) != 1 || found[0].Level != tt.level || !strings.Contains(found[0].Detail, tt.says) {
				t.Errorf("%+v; want %s with %q", found, tt.level, tt.says)
			}
			// The others look at it too, and must come back with something to say.
			for _, f := range d.data(t.Context()) {
				if f.Detail == "" {
					t.Errorf("a finding that says nothing: %+v", f)
				}
			}
		})
	}
}

// asGuest calls do as a user to whom modes apply and to whom the test's temporary folders belong, and says whether
// it could.
func asGuest(t *testing.T, do func()) bool {
	t.Helper()
	dir := filepath.Dir(t.TempDir()) // it keeps others out, and the folders are below it
	if who := guesttest.Credential(); who != nil {
		if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, int(who.Uid), int(who.Gid)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	return guesttest.Files(do)
}

// TestDoctorUserSpace: without a user space that can be written no thread can start,
// and the word about it is the one of a start.
func TestDoctorUserSpace(t *testing.T) {
	t.Parallel()
	d := testDoctor(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(d.project), "user"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found := d.stateFolder(t.Context())
	if len(found) != 1 || found[0].Level != levelFail || !strings.Contains(found[0].Detail, "cannot be written") || found[0].Try != "USER_SPACE=$(mktemp -d)" {
		t.Errorf("%+v", found)
	}
}

func TestDoctorDisk(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]level{0: levelFail, noSpace: levelWarn, littleSpace: levelOK, 1 << 60: levelOK} {
		if got := diskLeft(free); got.Level != want || (got.Try == "") != (want == levelOK) {
			t.Errorf("%d bytes left: %+v, want %s", free, got, want)
		}
	}
}

func TestFew(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]finding{warnf("do", "odd")}, maxSaidAlike+2)
	many = append(many, failf("do", "bad"))
	got := few(many)
	if len(got) != maxSaidAlike+1 || got[maxSaidAlike].Level != levelFail || got[maxSaidAlike].Detail != "and 3 more like these" {
		t.Errorf("%+v", got)
	}
	if got := few(many[:maxSaidAlike]); len(got) != maxSaidAlike {
		t.Errorf("%d findings are made %d", maxSaidAlike, len(got))
	}
}

// TestAdoptWith: the advice against a stranger's state can be followed.
func TestAdoptWith(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	meta := filepath.Join(dir, "a-1", "thread.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(meta), 0o700), os.WriteFile(meta, []byte(`{"thread_id":"a-1"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	own := place.State{Dir: "/p/mine", Seal: &place.Seal{}}
	for _, tt := range []struct {
		name     string
		own      place.State
		stranger place.Stranger
		want     string
	}{
		{"signed", place.State{}, place.Stranger{Dir: t.TempDir()}, "rye-mcp trust --adopt-state, if"},
		{"own threads beside it", own, place.Stranger{Dir: t.TempDir()}, `move "/p/mine" away, then`},
		{"not signed", own, place.Stranger{Dir: dir}, "cannot be adopted"},
		{"a link", own, place.Stranger{Dir: dir, Away: true}, "in its place"},
	} {
		if got := adoptWith(tt.own, tt.stranger); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

// TestDoctorShortContext: Ollama tells how much context it has loaded a model with, so that
// nobody has to wait for a thread whose requests it cuts off.
func TestDoctorShortContext(t *testing.T) {
	t.Parallel()
	const small = `{"models": [{"name": "qwen3:8b", "context_length": 4096}]}`
	for name, c := range map[string]struct {
		models, ps string
		says, try  string
	}{
		"less than threads take it for": {"", small, "ollama/qwen3:8b is loaded with a context of 4096 tokens, and threads take it to have 200000", "start Ollama with OLLAMA_CONTEXT_LENGTH=32768, and set models: {\"qwen3:8b\": {context_window: 32768}} in "},
		"enough, if it is said":         {"", strings.Replace(small, "4096", "65536", 1), "65536 tokens", "models: {\"qwen3:8b\": {context_window: 65536}} in "},
		"as it is said":                 {"models: {qwen3:8b: {context_window: 4096}}", small, "", ""},
		"by its whole name":             {"models: {gemma3: {vision: true}}", `{"models": [{"name": "gemma3:latest", "context_length": 4096}]}`, "ollama/gemma3 is loaded", "OLLAMA_CONTEXT_LENGTH"},
		"of no thread":                  {"", `{"models": [{"name": "embeddinggemma:latest", "context_length": 2048}]}`, "", ""},
		"nothing is loaded":             {"", `{"models": []}`, "", ""},
		"no Ollama":                     {"", "404 page not found", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.HandleFunc("GET /api/ps", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.ps) })
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			d := testDoctor(t)
			file := filepath.Join(d.user, ".ai", "config", "agent", "providers", "ollama.yaml")
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("base_url: "+server.URL+"/v1\n"+c.models+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			d = newDoctor(d.sys, options{}, d.project)
			var warned []finding
			for _, f := range d.modelProviders(t.Context()) {
				if f.Level == levelWarn {
					warned = append(warned, f)
				}
			}
			if c.says == "" && len(warned) == 0 {
				return
			}
			if len(warned) != 1 || c.says == "" || !strings.Contains(warned[0].Detail, c.says) || !strings.Contains(warned[0].Try, c.try) {
				t.Errorf("%+v, want %q", warned, c.says)
			}
		})
	}
}

// TestDoctorSettings: of every settings file doctor says what is wrong with it, and that
// hooks which no thread accepts are refused.
func TestDoctorSettings(t *testing.T) {
	t.Parallel()
	const broken = "nonsense: [\n"
	cases := map[string]struct {
		text string
		says string // in what fails
		warn string // in what is only odd
	}{
		"hooks":                    {text: broken, says: "hooks.yaml:2: malformed YAML"},
		"hooks, unsigned":          {text: "hooks:\n  - id: note\n    event: thread_started\n    action: {primary: execute, item_type: knowledge, item_id: rye/core/hooks}\n", says: "hooks.yaml is refused: it is not signed"},
		"hooks, unknown key":       {text: "hook: []\n", warn: "hook: unknown key"},
		"odd error_classification": {text: "pattern: []\n", warn: "pattern: unknown key"},
	}
	for _, name := range []string{"agent", "coordination", "resilience", "capability_risk", "tools", "notify", "mirror", "error_classification", "memory"} {
		cases[name] = struct{ text, says, warn string }{text: broken, says: name + ".yaml:2: malformed YAML"}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := testDoctor(t)
			file, _, _ := strings.Cut(strings.TrimPrefix(name, "odd "), ",")
			file = filepath.Join(d.user, ".ai", "config", "agent", file+".yaml")
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(tt.text), 0o600)); err != nil {
				t.Fatal(err)
			}
			d = newDoctor(d.sys, d.opts, d.project)
			told := map[string]level{}
			found := slices.Concat(d.settings(t.Context()), d.memory(t.Context()))
			for _, f := range found {
				if strings.Contains(f.Detail, cmp.Or(tt.says, tt.warn)) && f.Try != "" {
					told[f.Detail] = f.Level
				}
			}
			want := levelFail
			if tt.says == "" {
				want = levelWarn
			}
			if len(told) != 1 || slices.Collect(maps.Values(told))[0] != want {
				t.Errorf("%v of %+v", told, found)
			}
		})
	}
}
