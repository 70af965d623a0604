package main_test

import (
	"encoding/json"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/runtime/recording"
)

// fingerprintOf sets a variable to the fingerprint of the key that has signed a recording.
func fingerprintOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fingerprint VARIABLE FILE")
	}
	r, err := recording.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Setenv(args[0], r.Signer.Fingerprint())
}

// replaysAll is replays PROJECT: each of its threads gives the same when it is replayed,
// but for those without an answer of a model.
func replaysAll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: replays PROJECT")
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command("rye-mcp", args...)
		cmd.Dir = ts.MkAbs(".")
		for _, name := range []string{"HOME", "USER_SPACE", "PATH", "TMPDIR", "RYE_CACHE_DIR"} {
			cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
		}
		return cmd.CombinedOutput()
	}
	out, err := run("threads", "list", "--all", "--json", "--project", ts.MkAbs(args[0]))
	ts.Check(err)
	var list struct {
		Threads []struct {
			ID string `json:"thread_id"`
		} `json:"threads"`
	}
	ts.Check(json.Unmarshal(out, &list))
	same := 0
	for _, t := range list.Threads {
		out, err := run("replay", t.ID, "--project", ts.MkAbs(args[0]))
		switch text := string(out); {
		case err == nil:
			same++
		case !strings.Contains(text, "before its model had answered") && !strings.Contains(text, "no run of a directive"):
			ts.Fatalf("%s", text)
		}
	}
	if same == 0 {
		ts.Fatalf("none of %d threads was replayed", len(list.Threads))
	}
}
