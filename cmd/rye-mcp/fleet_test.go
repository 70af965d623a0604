package main_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestFleet runs testdata/fleet: scripts as those of TestScript, whose threads are kept on a
// PostgreSQL server.
func TestFleet(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "fleet"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("RYE_STORE", pgtest.Server(t))
			return setupScript(env)
		},
		Condition: scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"call":      callInScript,
			"capture":   captureField,
			"waitfile":  waitForFile,
			"killpid":   killPID,
			"requests":  countRequests,
			"requested": waitForRequests,
			"gone":      waitUntilGone,
			"nosecret":  noSecret,
		},
	})
}
