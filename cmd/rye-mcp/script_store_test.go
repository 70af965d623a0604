package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// scriptsOnPostgres are the scripts that are run again with their threads on PostgreSQL:
// one for each thing that is done with threads.
var scriptsOnPostgres = []string{"*"}

// TestScriptPostgres: what is done with threads is the same where their rows are on a
// server.
func TestScriptPostgres(t *testing.T) {
	t.Parallel()
	var files []string
	for _, name := range scriptsOnPostgres {
		f, _ := filepath.Glob(filepath.Join("testdata", "script", name+".txtar"))
		files = append(files, f...)
	}
	params := scriptParams()
	params.Dir, params.Files = "", files
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		if err := setup(env); err != nil {
			return err
		}
		env.Setenv(storeurl.Variable, pgtest.Server(t))
		return os.MkdirAll(filepath.Join(env.WorkDir, "home", ".ai", "config", "agent"), 0o700)
	}
	testscript.Run(t, params)
}
