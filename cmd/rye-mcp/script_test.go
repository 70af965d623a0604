package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/cli"
	_ "github.com/rye-mcp/rye-mcp/cmd/rye-mcp/confined" // tests run themselves as commands of tools
	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/confine"
	"github.com/rye-mcp/rye-mcp/tools/confine/confinetest"
)

// TestMain makes rye-mcp a program that scripts run as real child processes,
// and mcp one that calls a tool of a server it starts over stdio.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"rye-mcp": func() { os.Exit(cli.Main(testSystem(), os.Args[1:])) },
		"mcp":     func() { os.Exit(callTool(onOwn(), os.Args[1:])) },
		"holds":   func() { os.Exit(holdLock(os.Args[1:])) },
		"unnohup": func() { os.Exit(unNohup(os.Args[1:])) },
		"mcphttp": func() { os.Exit(callToolOverHTTP(os.Args[1:])) },
	})
}

// TestScript runs testdata/script. A file model.yaml in a script is what the
// vendor's API answers: it is served on loopback in the Anthropic protocol, and
// ANTHROPIC_BASE_URL names it, and MODEL_ADDRESS its host and port.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scriptParams(longtest.Sample(scriptsIn(t, "script"), 16)))
}

// scriptsIn are the scripts in a folder of testdata.
func scriptsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func scriptParams(files []string) testscript.Params {
	return testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Condition:           scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"call":        callInScript,
			"session":     useSession,
			"capture":     captureField,
			"served":      waitUntilServed,
			"http":        sendHTTP,
			"waitfile":    waitForFile,
			"killpid":     killPID,
			"suspended":   waitUntilSuspended,
			"corpus":      copyCorpus,
			"requests":    countRequests,
			"requested":   waitForRequests,
			"gone":        waitUntilGone,
			"noleftovers": noLeftovers,
			"nosecret":    noSecret,
			"legacysign":  legacySign,
			"replace":     replaceIn,
			"asks":        waitUntilAsked,
			"fingerprint": fingerprintOf,
			"replays":     replaysAll,
		},
	}
}

// uncheckSignatures lets scripts use items without signing them. Scripts that are
// about signatures remove $HOME/.ai first, and with it this setting.
func uncheckSignatures(home string) error {
	path := filepath.Join(home, ".ai", "config", "agent", "agent.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // the script may have one
	if err != nil {
		return err
	}
	_, err = file.WriteString("\nintegrity: {mode: off}\n")
	return errors.Join(err, file.Close())
}

// scriptCondition knows [corpus]: the corpus of existing directives is at hand, and
// [confined]: this system confines the commands of tools. That a program is at hand,
// testscript knows itself.
func scriptCondition(name string) (bool, error) {
	switch name {
	case "corpus":
	case "confined":
		self, err := os.Executable()
		if err != nil {
			return false, err
		}
		has := (&confine.Confiner{Self: self}).Available(context.Background())
		if !has.Whole() && confinetest.Possible(context.Background(), nil) {
			return false, fmt.Errorf("this system can confine commands: %s", has)
		}
		return has.Whole(), nil
	default:
		return false, fmt.Errorf("condition %s is not known", name)
	}
	dir, err := corpusDir()
	return !strings.HasSuffix(dir, lookAlikes), err
}

type modelKey struct{}

// testKey is the provider's key in scripts; nosecret looks for it.
const testKey = "test-key-that-must-not-leak"

func setupScript(env *testscript.Env) error {
	newSession(env)
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("USER_SPACE", home)
	env.Setenv("RYE_CACHE_DIR", filepath.Join(env.WorkDir, "cache"))
	if os.Getenv("GOCOVERDIR") != "" {
		env.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR"))
	}
	// Under the race detector every program would sleep for a second at its end.
	env.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if err := uncheckSignatures(home); err != nil {
		return err
	}
	corpus, err := corpusDir()
	if err != nil {
		return err
	}
	env.Setenv("CORPUS", corpus)
	return serveModel(env)
}

// serveModel serves the script's model.yaml, if it has one.
func serveModel(env *testscript.Env) error {
	source, err := os.ReadFile(filepath.Join(env.WorkDir, "model.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	script, err := scripted.Parse("model.yaml", source)
	if err != nil {
		return err
	}
	server, err := scripted.Serve(context.Background(), script, scripted.Options{Record: true})
	if err != nil {
		return err
	}
	env.Defer(func() { _ = server.Close() })
	env.Values[modelKey{}] = server
	env.Setenv("ANTHROPIC_BASE_URL", server.BaseURL())
	env.Setenv("MODEL_ADDRESS", strings.TrimPrefix(server.BaseURL(), "http://"))
	env.Setenv("ANTHROPIC_API_KEY", testKey)
	return nil
}

// capture NAME FIELD keeps a field of the JSON on standard output, such as
// thread_id or threads.0.thread_id, as a variable.
func captureField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME FIELD")
	}
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	for part := range strings.SplitSeq(args[1], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			var i int
			_, err := fmt.Sscan(part, &i)
			ts.Check(err)
			if i >= len(v) {
				ts.Fatalf("capture: no element %d in %s", i, args[1])
			}
			value = v[i]
		}
	}
	if value == nil {
		ts.Fatalf("capture: no %s in %s", args[1], ts.ReadFile("stdout"))
	}
	text, ok := value.(string)
	if !ok {
		raw, err := json.Marshal(value)
		ts.Check(err)
		text = string(raw)
	}
	ts.Setenv(args[0], text)
	sessionOf(ts).captured[args[0]] = true
}

// waitPatience bounds waits in scripts; a script that needs it has failed.
const waitPatience = time.Minute

// waitfile PATH [TEXT] waits until a file has content, and the text in it.
func waitForFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfile PATH [TEXT]")
	}
	text := append(args, "")[1]
	poll(ts.Fatalf, func() (bool, string) {
		content, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && len(content) > 0 && strings.Contains(string(content), text),
			fmt.Sprintf("%s did not come to contain %q (%v); it has:\n%s", args[0], text, err, content)
	})
}

// requests N checks how many calls the model has received.
func countRequests(ts *testscript.TestScript, neg bool, args []string) {
	if got, want := received(ts), requestsArg(ts, args); (got == want) == neg {
		ts.Fatalf("the model received %d requests, want %d (negated: %t)", got, want, neg)
	}
}

// requested N waits until the model has received N calls.
func waitForRequests(ts *testscript.TestScript, neg bool, args []string) {
	want := requestsArg(ts, args)
	if neg {
		ts.Fatalf("requested waits, it cannot be negated")
	}
	poll(ts.Fatalf, func() (bool, string) {
		got := received(ts)
		return got >= want, fmt.Sprintf("the model received %d requests, want %d", got, want)
	})
}

func requestsArg(ts *testscript.TestScript, args []string) int {
	if len(args) != 1 {
		ts.Fatalf("usage: requests N or requested N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	return n
}

func received(ts *testscript.TestScript) int {
	server, ok := ts.Value(modelKey{}).(*scripted.Server)
	if !ok {
		ts.Fatalf("the script has no model.yaml")
	}
	return len(server.Requests())
}
