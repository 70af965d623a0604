package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// hostile is a message about a thread whose directive has a name that others could take
// for commands, markup and options.
var hostile = Message{
	Event: "ended", ThreadID: "$(touch pwned)`id`;<b>&'\"-1", Directive: "--help; rm -rf ~", Status: thread.Completed, Spend: 1500, Project: "p", Count: 1,
}

// TestAttackDirectiveName: a directive is named like a command of a shell, markup of a desktop or an option. Programs find the name in one variable and one argument, and nothing of it is run or rendered.
func TestAttackDirectiveName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "tell")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s|' \"$#\" \"$1\" \"$RYE_THREAD_ID\" \"$RYE_DIRECTIVE\" \"$RYE_SPEND\" >said\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	ways := Ways(config.Notify{Command: []string{"~/tell", "one argument"}}, os.Environ(), dir, "/project")
	if err := ways[0].Send(t.Context(), hostile); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if want := "1|one argument|" + string(hostile.ThreadID) + "|" + hostile.Directive + "|0.0015|"; err != nil || string(said) != want {
		t.Errorf("the program found %q (%v), want %q", said, err, want)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v", entries)
	}
	linux, mac := desktop{system: "linux"}.args(hostile), desktop{system: "darwin"}.args(hostile)
	if shown := linux[len(linux)-1]; !slices.Contains(linux, "--") || strings.ContainsAny(shown, "<>") || !strings.Contains(shown, "&lt;b&gt;&amp;") {
		t.Errorf("notify-send %q", linux)
	}
	if len(mac) != 3 || mac[1] != showIt || !strings.Contains(mac[2], string(hostile.ThreadID)) {
		t.Errorf("osascript %q", mac)
	}
}

func TestCommandThatFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		argv []string
		want string
	}{
		"code":     {[]string{"sh", "-c", "echo no luck >&2; exit 3"}, "ended with code 3: no luck"},
		"missing":  {[]string{"there-is-no-such-program"}, "not found"},
		"relative": {[]string{"./tell"}, "neither a name nor a whole path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := command{argv: tt.argv, environ: os.Environ(), home: t.TempDir()}.Send(t.Context(), Message{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Method + " " + r.Header.Get("Content-Type") + " " + string(body)
	}))
	defer s.Close()
	if err := (webhook{s.URL + "/hook"}).Send(t.Context(), hostile); err != nil {
		t.Fatal(err)
	}
	body, ok := strings.CutPrefix(<-got, "POST application/json ")
	var back Message
	if err := json.Unmarshal([]byte(body), &back); !ok || err != nil || back.ThreadID != hostile.ThreadID {
		t.Errorf("posted %s: %v", body, err)
	}
}

// TestAttackWebhookRedirect: the server of a webhook sends the message on to an address inside the person's network, or answers without end. It goes nowhere else, little of the answer is read, and the log has no secret of the address.
func TestAttackWebhookRedirect(t *testing.T) {
	t.Parallel()
	var inside atomic.Int32
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	defer private.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, private.URL, http.StatusTemporaryRedirect)
		_, _ = w.Write(make([]byte, 1<<20))
	}))
	defer s.Close()
	err := (webhook{s.URL + "/services/SECRET"}).Send(t.Context(), hostile)
	if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "307") || inside.Load() != 0 {
		t.Errorf("%v, sent on %d times", err, inside.Load())
	}
	s.Close()
	if err := (webhook{s.URL + "/services/SECRET"}).Send(t.Context(), hostile); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("without a server: %v", err)
	}
}

// TestFirstLine: the last words of a command are told up to a length, in whole characters.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"":                                  "",
		"\n one\ntwo":                       "one",
		strings.Repeat("\u00e9", 100):       strings.Repeat("\u00e9", 100),
		"a" + strings.Repeat("\u00e9", 150): "a" + strings.Repeat("\u00e9", 99) + "\u2026",
	} {
		if got := firstLine([]byte(said)); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
