package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// doors are the packages behind which another implementation can stand, by the files
// that may name the one there is. Everybody else is handed an interface.
var doors = map[string][]string{
	// Records and lives of threads that run elsewhere have no folders here.
	"runtime/folder": {
		"runtime/records/local.go", "runtime/records/stage.go", "runtime/remote/copy.go", "runtime/life/local.go", "orchestrator/spawn/spawn.go",
		"cmd/rye-mcp/cli/state.go", "cmd/rye-mcp/cli/thread_run.go",
	},
	// Which store there is, and how it is asked for, is known where it is opened.
	"runtime/store/postgres": {
		"cmd/rye-mcp/cli/store_shared.go", "cmd/rye-mcp/cli/store_command.go", "cmd/rye-mcp/cli/records.go", "cmd/rye-mcp/cli/wire.go",
	},
	// A store need not be files of SQLite.
	"runtime/store/sqlite": {
		"cmd/rye-mcp/cli/complete.go", "cmd/rye-mcp/cli/doctor_machine.go", "cmd/rye-mcp/cli/doctor_shared.go", "cmd/rye-mcp/cli/store.go",
	},
}

// pathRecords are the files that read what a person or a setting names by its path, as
// if it were a record of a thread.
var pathRecords = []string{"runtime/remote/artifacts.go", "runtime/audit/files.go", "cmd/rye-mcp/cli/threads_receipt.go"}

// threadFiles are the names of a thread's files. Only their folder makes paths of them.
var threadFiles = []string{"thread.json", "transcript.jsonl", "thread.log", "thread.lock", "capabilities.md", "artifacts"}

// TestDoors shows that nobody walks around a door.
func TestDoors(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachSource(t, rooms, func(name string, positions *token.FileSet, file *ast.File) {
		if forTests(path.Dir(name)) {
			return
		}
		for _, problem := range throughWalls(name, positions, file, used) {
			t.Error(problem)
		}
	})
	for _, files := range doors {
		for _, name := range files {
			if !used[name] {
				t.Errorf("%s is in the list of doors and needs none", name)
			}
		}
	}
}

// throughWalls says what a file does that goes around a door, and notes in used that it
// goes through one.
func throughWalls(name string, positions *token.FileSet, file *ast.File, used map[string]bool) (problems []string) {
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // the parser has read it
		door := strings.TrimPrefix(imported, module)
		switch {
		case doors[door] == nil || path.Dir(name) == door:
		case slices.Contains(doors[door], name):
			used[name] = true
		default:
			problems = append(problems, name+" imports "+door+": only "+strings.Join(doors[door], ", ")+" may")
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		at := positions.Position(call.Pos())
		where := name + ":" + strconv.Itoa(at.Line)
		switch called(call) {
		case "filepath.Join", "path.Join":
			if named := threadFileOf(call); named != "" && path.Dir(name) != "runtime/folder" {
				problems = append(problems, where+" makes a path of "+named+": ask runtime/records")
			}
		case "records.File":
			if !slices.Contains(pathRecords, name) {
				problems = append(problems, where+" makes a record of a path: ask records.Records")
			}
		}
		return true
	})
	return problems
}

// called is the function of another package that is called; empty for others.
func called(call *ast.CallExpr) string {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := of.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return pkg.Name + "." + of.Sel.Name
}

// threadFileOf is the name of a thread's file among the arguments.
func threadFileOf(call *ast.CallExpr) string {
	for _, arg := range call.Args {
		literal, ok := arg.(*ast.BasicLit)
		if !ok {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && slices.Contains(threadFiles, path.Base(text)) {
			return text
		}
	}
	return ""
}

// TestDoorsCanFail shows that the rules find something.
func TestDoorsCanFail(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`import "` + module + `runtime/folder"`:                                    "imports runtime/folder",
		`import "` + module + `runtime/store/sqlite"`:                              "imports runtime/store/sqlite",
		`func f(dir string) string { return filepath.Join(dir, "thread.json") }`:   "makes a path of thread.json",
		`func f(dir string) any { return records.File(dir) }`:                      "makes a record of a path",
		`import "` + module + `runtime/records"`:                                   "",
		`func f(dir string) string { return filepath.Join(dir, "registry.lock") }`: "",
	} {
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, "x.go", "package x\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		problems := throughWalls("orchestrator/x/x.go", positions, file, map[string]bool{})
		if found := strings.Join(problems, "\n"); !strings.Contains(found, want) || (found == "") != (want == "") {
			t.Errorf("%s: %q, want %q", source, found, want)
		}
	}
}
