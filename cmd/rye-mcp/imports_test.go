package main_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rye-mcp/rye-mcp/"

// rooms in the order in which imports may point: to the right.
var rooms = []string{"cmd", "mcp", "orchestrator", "runtime", "tools", "spaces"}

// controlRooms are the rooms behind orchestrator/control, in the order in which
// imports may point: to the right.
var controlRooms = []string{"operation", "control", "continuation", "fanout", "scheduler", "costs", "tidy", "stop", "replay", "plan", "verify", "health", "news", "board", "changes", "steer", "view", "settings", "threads"}

// plainPackages know files and paths alone. A package that imports nothing else of the module
// may import them.
var plainPackages = []string{"spaces/regular", "spaces/pathname"}

// neverImports are the rules within and across rooms that the order alone does
// not give. A package is named by its path below the module; a rule holds for
// everything below it too.
var neverImports = []struct{ pkg, imports, why string }{
	{"cmd/rye-mcp/termsvg", module, "a terminal is bytes"},
	{"cmd/rye-mcp/termsvg", "os", "a terminal is bytes"},
	{"cmd/rye-mcp/plain", module, "text is text"},
	{"cmd/rye-mcp/plain", "os", "text is text"},
	{"cmd/rye-mcp/top", "os", "a screen is made of values"},
	{"cmd/rye-mcp/top", "orchestrator/control", "what is done goes out as calls"},
	{"cmd/rye-mcp/top", "runtime/store", "what is shown comes in as boards"},
	{"cmd/rye-mcp/tail", "os", "events are told, not looked for"},
	{"cmd/rye-mcp/tail", "orchestrator", "events are told, not looked for"},
	{"mcp", "runtime/store", "MCP goes through orchestrator/control"},
	{"mcp", "runtime/loop", "MCP goes through orchestrator/control"},
	{"mcp", "runtime/llm", "MCP goes through orchestrator/control"},
	{"mcp/prompt", "mcp/server", "prompts know no transport"},
	{"mcp/prompt", "os", "prompts read items through the resolver"},
	{"mcp/page", "mcp/server", "the page knows no transport of MCP"},
	{"mcp/page", "os", "the page shows what others read"},
	{"mcp/task", "os", "tasks are threads under another name"},
	{"mcp/handler", "database/sql", "handlers only translate"},
	{"mcp/handler", "os/exec", "handlers only translate"},
	{"orchestrator", "runtime/loop", "the loop runs in the thread's own process"},
	{"orchestrator/operation", "runtime/store", "operations go through orchestrator/control"},
	{"orchestrator/metrics", "orchestrator/control", "metrics are told of rows"},
	{"orchestrator/lineage", "runtime/store", "lineage is pure"},
	{"orchestrator/lineage", "os", "lineage is pure"},
	{"runtime/thread", module, "the vocabulary imports the standard library only"},
	{"runtime/store", "runtime/loop", "the store knows nothing above it"},
	{"runtime/store", "runtime/llm", "the store knows nothing of models"},
	{"runtime/store", "tools", "the store knows nothing of tools"},
	{"cmd", "runtime/store/sqlstore", "the flows of a store are reached through an engine"},
	{"orchestrator", "runtime/store/sqlstore", "the flows of a store are reached through an engine"},
	{"runtime/loop", "runtime/store/sqlstore", "the flows of a store are reached through an engine"},
	{"runtime/store/sqlstore", "runtime/store/sqlite", "the flows of a store know no engine"},
	{"runtime/store/sqlstore", "runtime/store/postgres", "the flows of a store know no engine"},
	{"runtime/store/sqlstore", "modernc.org/sqlite", "the flows of a store know no engine"},
	{"runtime/store/postgres/pgtest", module, "a server for tests knows no tables"},
	{"runtime/store/postgres/fleet", "runtime/store/sqlstore", "a lease knows no thread"},
	{"runtime/store/sqlite/sharedfile", module, "a shared file knows neither threads nor tables"},
	{"runtime/digest", "runtime/loop", "what threads have left is asked for from anywhere"},
	{"runtime/digest", "os", "a digest is made of rows and records"},
	{"runtime/rag", "runtime/loop", "an index is anybody's"},
	{"runtime/memory", "runtime/loop", "what is remembered is anybody's"},
	{"runtime/memory", "runtime/store", "entries are kept by the index"},
	{"runtime/memory", "database/sql", "entries are kept by the index"},
	{"runtime/rag/vector", "database/sql", "vectors are numbers"},
	{"runtime/rag/vector", module, "vectors are numbers"},
	{"runtime/store/late", "database/sql", "a store that may not be there knows no database"},
	{"runtime/daily", "runtime/loop", "the book knows nothing above the store"},
	{"runtime/daily", "runtime/llm", "the book knows nothing of models"},
	{"runtime/announce", "runtime/loop", "changes are announced whoever makes them"},
	{"runtime/announce", "runtime/llm", "changes are announced whoever makes them"},
	{"runtime/announce", "tools", "who sends is somebody else"},
	{"runtime/telemetry", "runtime/loop", "spans are made of what a thread has left"},
	{"runtime/telemetry", "database/sql", "rows are asked for"},
	{"runtime/telemetry", "os/exec", "who starts a sender is somebody else"},
	{"runtime/langgraph", "runtime/store", "a client of a server knows no threads of ours"},
	{"runtime/langgraph", "runtime/loop", "a client of a server knows no threads of ours"},
	{"runtime/langgraph", "os", "it is given its key"},
	{"runtime/due", "runtime/store", "a note names a thread"},
	{"orchestrator/mirror", "runtime/loop", "a mirror is made of what threads have left"},
	{"orchestrator/mirror", "os/exec", "who starts a sender is somebody else"},
	{"orchestrator/mirror", "database/sql", "rows are asked for"},
	{"runtime/records", "runtime/store", "records are what stands beside the rows"},
	{"runtime/records", "runtime/llm", "records are bytes and documents"},
	{"runtime/life", "runtime/store", "whether somebody lives is not read from the store"},
	{"runtime/life", "runtime/loop", "a life is that of any thread"},
	{"orchestrator/control", "tools/process", "lives are asked of runtime/life"},
	{"orchestrator/recovery", "tools/process", "lives are asked of runtime/life"},
	{"runtime/workspace", "runtime/store", "a workspace is files"},
	{"runtime/workspace", "runtime/loop", "a workspace is anybody's"},
	{"runtime/snapshot", "runtime/store", "a snapshot is files, and contents by their hashes"},
	{"runtime/snapshot", "runtime/loop", "a snapshot is anybody's"},
	{"cmd/rye-mcp/plot", module, "drawings know numbers only"},
	{"runtime/timeline", "runtime/store", "a timeline is made of what it is given"},
	{"runtime/timeline", "os", "a timeline is made of what it is given"},
	{"runtime/transcript", "runtime/store", "the transcript is a record"},
	{"runtime/transcript", "runtime/folder", "where the transcript lies is not its own affair"},
	{"runtime/loop", "os/exec", "processes belong to tools/process"},
	{"runtime/loop", "github.com/anthropics", "vendors stay below runtime/llm"},
	{"runtime/loop", "github.com/sashabaranov", "vendors stay below runtime/llm"},
	{"runtime/llm/lenient", "os", "it only asks again"},
	{"runtime/llm/lenient", "runtime/store", "it only asks again"},
	{"runtime/llm/lenient", "runtime/loop", "it only asks again"},
	{"runtime/llm/textcalls", "net", "calls in text are text"},
	{"runtime/llm/textcalls", "os", "calls in text are text"},
	{"runtime/llm", "runtime/loop", "the loop asks a client, not the other way round"},
	{"runtime/llm", "runtime/store", "a client of a model knows no threads"},
	{"runtime/llm/recorded", "net", "what was answered is on record"},
	{"runtime/llm/recorded", "os", "what was answered is on record"},
	{"runtime/rag/eval", "runtime/rag/embed", "an evaluation is handed its vectors"},
	{"runtime/rag/eval", "database/sql", "an evaluation asks the index as everybody does"},
	{"runtime/rag/embed", "runtime/store", "an endpoint knows no threads"},
	{"runtime/rag/embed", "runtime/loop", "an endpoint knows no threads"},
	{"runtime/rag/embed", "database/sql", "vectors are kept elsewhere"},
	{"runtime/replay", "net", "a replay reaches nothing"},
	{"runtime/replay", "os", "a replay is given its store and its records"},
	{"runtime/replay", "tools/executor", "a replay runs no tool"},
	{"runtime/recording", "runtime/store", "a recording is a file"},
	{"runtime/recording", "net", "a recording is a file"},
	{"runtime/limit", "os", "limits are pure"},
	{"runtime/limit", "runtime/store", "limits are pure"},
	{"runtime/permission", "os", "permissions are pure"},
	{"runtime/permission", "runtime/store", "permissions are pure"},
	{"runtime/handoff", "os", "what a successor is told follows from what it is given"},
	{"runtime/handoff", "runtime/store", "what a successor is told follows from what it is given"},
	{"runtime/handoff", "runtime/loop", "the loop hands over, not the other way round"},
	{"runtime/prompt", "runtime/store", "a prompt is text"},
	{"runtime/opening", "runtime/store", "a first request is made of text and tools"},
	{"runtime/opening", "runtime/loop", "dry runs make the same request"},
	{"tools/process", module, "processes know nothing of what they run"},
	{"tools/action", "os/exec", "actions start nothing themselves"},
	{"tools/gitignore", "os", "patterns are text"},
	{"tools/gitignore", module, "patterns know nothing of the project"},
	{"tools/retryafter", "os", "a header is text"},
	{"tools/retryafter", module, "a header knows nothing of who asked"},
	{"tools/executor", "tools/action", "a tool is run the same way whoever asks"},
	{"tools/gitrepo", "tools/builtin", "tools and workspaces run git the same way"},
	{"tools/confine", "tools/executor", "confinement knows commands, not tools"},
	{"spaces/foreign", "os", "it reads bytes"},
	{"spaces/foreign/claude", "os", "it reads bytes"},
	{"tools/executor/chain", "tools/executor/", "a chain knows its primitives by their interface"},
	{"spaces/item", "os", "items are words, not files"},
	{"spaces/storeurl", "os", "an address is text"},
	{"spaces/storeurl", module, "addresses know nothing of settings"},
	{"spaces/projectname", "os", "a name follows from facts"},
	{"spaces/projectname", module, "names know nothing of settings"},
	{"spaces/constant", "os", "reading constants takes text"},
	{"spaces/constant", module, "constants know nothing of items"},
	{"spaces/parse", "os", "parsing takes bytes"},
	{"spaces/search/query", module, "a query is text"},
	{"spaces/search/query", "os", "a query is text"},
	{"spaces/search/query", "database/sql", "a query is text"},
	{"spaces/regular", module, "a file is opened without knowing what it is"},
	{"spaces/pathname", module, "a path lies in a folder, whatever the folder is"},
	{"spaces/configfile", module, "files of other programs are bytes"},
	{"spaces/disktest", module, "a disk knows nothing of what is on it"},
	{"spaces/longtest", module, "how long a test takes is said by the test"},
	{"spaces/itemfile", "tools", "files of items know no tools"},
}

// TestImports keeps the picture in AGENTS.md true.
func TestImports(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	files := 0
	for _, room := range rooms {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			files++
			checkFile(t, root, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Fatalf("only %d Go files found below %s; the test looks in the wrong place", files, root)
	}
}

func checkFile(t *testing.T, root, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	pkg := filepath.ToSlash(rel)
	test := strings.HasSuffix(path, "_test.go") || forTests(pkg)
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if why := broken(pkg, imported, test); why != "" {
			t.Errorf("%s imports %s: %s", path, imported, why)
		}
	}
}

// forTests reports whether a package is one that tests share: its name says so.
func forTests(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// broken names the rule that an import breaks. Tests may import what they need
// to set up a scene, but never against the order of the rooms.
func broken(pkg, imported string, test bool) string {
	inModule, ours := strings.CutPrefix(imported, module)
	if ours && inModule != "runtime/thread" {
		from, to := slices.Index(rooms, first(pkg)), slices.Index(rooms, first(inModule))
		if to < from {
			return first(pkg) + " may not import " + first(inModule) + ": imports point right, " + strings.Join(rooms, " → ")
		}
	}
	if test {
		return ""
	}
	if ours && forTests(inModule) {
		return "it is for tests"
	}
	if from, to := controlRoom(pkg), controlRoom(inModule); ours && from >= 0 && to >= 0 && to < from {
		return pkg + " may not import " + inModule + ": imports point right, " + strings.Join(controlRooms, " → ")
	}
	for _, rule := range neverImports {
		if !within(pkg, rule.pkg) || rule.imports == module && slices.Contains(plainPackages, inModule) {
			continue
		}
		if within(imported, rule.imports) || ours && within(inModule, rule.imports) || ours && rule.imports == module {
			return rule.why
		}
	}
	return ""
}

// controlRoom is the place of a package among the rooms behind orchestrator/control,
// or -1.
func controlRoom(pkg string) int {
	name, ok := strings.CutPrefix(pkg, "orchestrator/")
	if !ok {
		return -1
	}
	return slices.Index(controlRooms, first(name))
}

func first(path string) string {
	room, _, _ := strings.Cut(path, "/")
	return room
}

func within(path, above string) bool {
	return path == above || strings.HasPrefix(path, strings.TrimSuffix(above, "/")+"/")
}

// TestBroken shows that the rules can fail.
func TestBroken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pkg, imported string
		test, want    bool
	}{
		{"spaces/item", module + "tools/tool", false, true},
		{"spaces/item", module + "tools/tool", true, true},
		{"tools/tool", module + "runtime/thread", false, false},
		{"tools/tool", module + "runtime/store", false, true},
		{"runtime/thread", module + "spaces/item", false, true},
		{"runtime/thread", "context", false, false},
		{"mcp/handler", module + "orchestrator/control", false, false},
		{"orchestrator/threads", module + "orchestrator/view", false, true},
		{"orchestrator/view", module + "orchestrator/threads", false, false},
		{"orchestrator/threads", module + "orchestrator/lineage", false, false},
		{"mcp/handler", "os/exec", false, true},
		{"mcp/handler", "os/exec", true, false},
		{"runtime/loop", "github.com/anthropics/anthropic-sdk-go", false, true},
		{"cmd/rye-mcp/cli", module + "spaces/item", false, false},
	}
	for _, tt := range tests {
		if got := broken(tt.pkg, tt.imported, tt.test); (got != "") != tt.want {
			t.Errorf("broken(%s, %s, test=%t) = %q, want a rule: %t", tt.pkg, tt.imported, tt.test, got, tt.want)
		}
	}
}
