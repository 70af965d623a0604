package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// withCommand is a registry whose openai has a key from a command.
func withCommand(argv ...string) *Registry {
	s := usual()
	p := s.providers["openai"]
	p.APIKeyCommand = argv
	s.providers["openai"] = p
	return registry(s, false)
}

// keyOf is the key of openai.
func keyOf(t *testing.T, r *Registry) (string, error) {
	t.Helper()
	p, _, err := r.config.Provider("openai")
	if err != nil {
		t.Fatal(err)
	}
	return r.Key(t.Context(), p)
}

// TestKeyAgain: a key that was refused is asked for again, and the same one is none.
func TestKeyAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	write := func(key string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sk-1")
	r := withCommand("/bin/cat", file)
	p, _, err := r.config.Provider("openai")
	if err != nil {
		t.Fatal(err)
	}
	if key, err := keyOf(t, r); key != "sk-1" || err != nil {
		t.Fatalf("%q, %v", key, err)
	}
	if key, is := r.KeyAgain(t.Context(), p, "sk-1"); is {
		t.Errorf("the refused key again: %q", key)
	}
	write("sk-2")
	if key, is := r.KeyAgain(t.Context(), p, "sk-1"); !is || key != "sk-2" {
		t.Errorf("the new key: %q, %t", key, is)
	}
	write("sk-3")
	if key, is := r.KeyAgain(t.Context(), p, "sk-1"); !is || key != "sk-2" { // another call has it already
		t.Errorf("the key of another call: %q, %t", key, is)
	}
}

func TestKeyCommand(t *testing.T) {
	t.Parallel()
	sh := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	for _, test := range []struct {
		name       string
		argv       []string
		key, wrong string
	}{
		{"a key", sh("echo ' sk-1 '"), "sk-1", ""},
		{"arguments as they are", []string{"/bin/echo", "$HOME;`id`"}, "$HOME;`id`", ""},
		{"away from the project", sh("pwd"), "/", ""},
		{"nothing", sh("echo"), "", "printed nothing"},
		{"two lines", sh("printf 'a\\nsecret\\n'"), "", "printed more than one line"},
		{"one MB", sh("head -c 1000000 /dev/zero | tr '\\0' x"), "", "printed more than a key"},
		{"exit code", sh("echo secret; echo secret >&2; exit 1"), "", "ended with exit code 1"},
		{"a signal", sh("kill -9 $$"), "", "was ended by SIGKILL"},
		{"a control character", sh("printf 'a\\033b'"), "", "printed what no header can carry"},
		{"no text", sh("printf '\\377\\376'"), "", "printed what no header can carry"},
		{"no program", []string{"/nowhere/op"}, "", "cannot be started: no such file or directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			key, err := keyOf(t, withCommand(test.argv...))
			if test.wrong == "" {
				if err != nil || key != test.key {
					t.Errorf("got %q, %v", key, err)
				}
				return
			}
			var failed *KeyError
			if !errors.As(err, &failed) || !strings.Contains(failed.Error(), test.wrong) || strings.Contains(failed.Error(), "secret") {
				t.Errorf("got %q, %v", key, err)
			}
			if !strings.Contains(failed.Try(), "by hand") || !strings.Contains(failed.Error(), "openai") {
				t.Errorf("says %s, try %s", failed, failed.Try())
			}
		})
	}
}

// TestKeyCommandHangs: the time a command has is bounded, and a caller that has gone
// does not wait for it.
func TestKeyCommandHangs(t *testing.T) {
	t.Parallel()
	r := withCommand("/bin/sleep", "600")
	r.keys.run = func(ctx context.Context, c process.Command) (process.Result, error) {
		if c.Timeout != keyTimeout {
			t.Errorf("may take %s", c.Timeout)
		}
		c.Timeout = time.Millisecond
		return process.Run(ctx, c)
	}
	if _, err := keyOf(t, r); err == nil || !strings.Contains(err.Error(), "did not end within 30s") {
		t.Errorf("got %v", err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the caller has gone")
	cancel(why)
	r = withCommand("/bin/sleep", "600")
	p, _, _ := r.config.Provider("openai")
	if _, err := r.Key(gone, p); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestKeyIsKept: a command runs when its key is needed and not again within a minute;
// a key that this process was handed is never asked for.
func TestKeyIsKept(t *testing.T) {
	t.Parallel()
	r := withCommand("/bin/echo", "sk")
	now, runs := time.Unix(0, 0), 0
	r.keys.now = func() time.Time { return now }
	r.keys.run = func(ctx context.Context, c process.Command) (process.Result, error) {
		runs++
		return process.Result{Stdout: fmt.Appendf(nil, "sk-%d", runs)}, nil
	}
	if _, err := r.Choose(t.Context(), Want{Override: "openai/fast"}); err != nil || runs != 0 {
		t.Fatalf("to choose ran it %d times (%v)", runs, err)
	}
	for step, want := range []string{"sk-1", "sk-1", "sk-2"} {
		if step == 2 {
			now = now.Add(keyLife)
		}
		if key, err := keyOf(t, r); err != nil || key != want {
			t.Errorf("step %d: got %q, %v", step, key, err)
		}
	}
	handed, err := r.Keys(t.Context(), "openai/gpt-5")
	if err != nil || len(handed) != 1 || handed["openai"] != "sk-2" {
		t.Errorf("handed %v, %v", handed, err)
	}
	other := withCommand("/bin/false")
	other.Adopt(handed)
	if key, err := keyOf(t, other); err != nil || key != "sk-2" {
		t.Errorf("got %q, %v", key, err)
	}
	if handed, err := r.Keys(t.Context(), "anthropic/claude"); err != nil || len(handed) != 0 {
		t.Errorf("handed %v, %v", handed, err)
	}
}

// TestKeyFailureIsKept: a command that gave no key does not run again at once, and what it
// gives then counts.
func TestKeyFailureIsKept(t *testing.T) {
	t.Parallel()
	r := withCommand("/bin/op")
	now, runs := time.Unix(0, 0), 0
	r.keys.now = func() time.Time { return now }
	r.keys.run = func(context.Context, process.Command) (process.Result, error) {
		if runs++; runs == 1 {
			return process.Result{ExitCode: 1}, nil
		}
		return process.Result{Stdout: []byte("sk")}, nil
	}
	for range 20 {
		if _, err := keyOf(t, r); err == nil || !strings.Contains(err.Error(), "exit code 1") {
			t.Fatalf("got %v", err)
		}
	}
	if runs != 1 {
		t.Errorf("it ran %d times", runs)
	}
	now = now.Add(failureLife)
	if key, err := keyOf(t, r); err != nil || key != "sk" || runs != 2 {
		t.Errorf("got %q, %v, after %d runs", key, err, runs)
	}
}

// TestKeyVariableFirst: a variable goes before the command, which then does not run.
func TestKeyVariableFirst(t *testing.T) {
	t.Parallel()
	r := withCommand("/bin/false")
	r.getenv = func(string) string { return "from the variable" }
	if key, err := keyOf(t, r); err != nil || key != "from the variable" {
		t.Errorf("got %q, %v", key, err)
	}
	if handed, err := r.Keys(t.Context(), "openai/gpt-5"); err != nil || len(handed) != 0 {
		t.Errorf("handed %v, %v", handed, err)
	}
}

func TestKeychain(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]string{
		"linux":  "secret-tool lookup service rye-mcp account openai",
		"darwin": "security find-generic-password -s rye-mcp -a openai -w",
		"plan9":  "",
	} {
		s := usual()
		p := s.providers["openai"]
		p.APIKeyKeychain, p.APIKeyEnv = "openai", ""
		s.providers["openai"] = p
		r := registry(s, false)
		ran := ""
		r.keys.system = system
		r.keys.run = func(_ context.Context, c process.Command) (process.Result, error) {
			ran = strings.Join(append([]string{c.Path}, c.Args...), " ")
			return process.Result{Stdout: []byte("sk\n")}, nil
		}
		key, err := keyOf(t, r)
		if ran != want || (want != "") != (err == nil && key == "sk") {
			t.Errorf("%s: ran %q, got %q, %v", system, ran, key, err)
		}
		r.keys.known = nil
		r.keys.run = func(context.Context, process.Command) (process.Result, error) {
			return process.Result{ExitCode: 1}, nil
		}
		_, err = keyOf(t, r)
		var failed *KeyError
		if !errors.As(err, &failed) || (want != "") != strings.Contains(failed.Try(), " rye-mcp ") {
			t.Errorf("%s: %v", system, err)
		}
	}
}

// TestAttackKeyProgramInProject: a program of the name that gives the user's key lies in the folder of a project.
// The command runs outside of the project and finds only what the user's PATH has.
func TestAttackKeyProgramInProject(t *testing.T) { //nolint:paralleltest // it changes the working folder
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "give-key"), []byte("#!/bin/sh\necho taken\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("PATH", ".:"+os.Getenv("PATH"))
	if key, err := keyOf(t, withCommand("give-key")); err == nil {
		t.Errorf("got %q", key)
	}
	if key, err := keyOf(t, withCommand("/bin/pwd")); err != nil || key != "/" {
		t.Errorf("it runs in %q (%v)", key, err)
	}
}

func TestWireOf(t *testing.T) {
	t.Parallel()
	const official = "https://api.openai.com/v1"
	for _, test := range []struct{ wire, base, model, want string }{
		{"", official, "gpt-6-sol", config.WireResponses},
		{"", official, "gpt-4o", config.WireChat},
		{"", official, "gpt-5-chat-latest", config.WireChat},
		{"", official, "o4-mini", config.WireResponses},
		{"", official, "gpt-10", config.WireResponses},
		{"", official, "omni-moderation", config.WireChat},
		{"", "https://eu.api.openai.com/v1", "gpt-5-codex", config.WireResponses},
		{"", "https://gateway.example/v1", "gpt-6-sol", config.WireChat},
		{"", "https://api.openai.com.evil.example/v1", "gpt-6-sol", config.WireChat},
		{config.WireResponses, "https://gateway.example/v1", "any", config.WireResponses},
		{config.WireChat, official, "gpt-6-sol", config.WireChat},
	} {
		if got := wireOf(config.Provider{Wire: test.wire}, test.base, test.model); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}

// TestKeyIsRenewed: a token that has run out is replaced by what the command gives then,
// once; a key that stays refused is the caller's affair.
func TestKeyIsRenewed(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer token-2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\n")
	}))
	t.Cleanup(server.Close)
	r := withCommand("/bin/false")
	s, _ := r.config.(settings)
	p := s.providers["openai"]
	p.BaseURL = server.URL
	s.providers["openai"] = p
	runs := 1
	r.keys.run = func(context.Context, process.Command) (process.Result, error) {
		runs++
		return process.Result{Stdout: fmt.Appendf(nil, "token-%d", runs)}, nil
	}
	r.Adopt(map[string]string{"openai": "token-1"})
	client, choice := open(t, r, "openai/fast")
	req := llm.Request{Model: choice.Model.ID, Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 10}
	for range 2 {
		if resp, err := client.Stream(t.Context(), req, nil); err != nil || resp.Blocks[0].Text != "hi" {
			t.Fatalf("got %+v, %v", resp, err)
		}
	}
	if got := strings.Join(asked, ", "); got != "Bearer token-1, Bearer token-2, Bearer token-2" {
		t.Errorf("asked with %s", got)
	}
	p.APIKeyCommand = []string{"/bin/echo", "token-9"}
	s.providers["openai"] = p
	other := registry(s, false)
	asked = nil
	client, _ = open(t, other, "openai/fast")
	var refused *llm.APIError
	if _, err := client.Stream(t.Context(), req, nil); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized || len(asked) != 1 {
		t.Errorf("got %v after %q", err, asked)
	}
}
