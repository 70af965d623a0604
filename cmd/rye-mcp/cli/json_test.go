package cli

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/validate"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/tools/action"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The output of --json is stable: a key that goes, or gets another name or type,
// breaks somebody's program.
func TestJSONKeys(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, answer := range []struct {
		command string
		value   any
	}{
		{"config show", configJSON{}},
		{"doctor", doctorJSON{}},
		{"export claude", exportJSON{}},
		{"hooks explain", plan.HookPlan{}},
		{"install", installed{}},
		{"install --print", printedEntry{}},
		{"install, without a client", foundClient{}},
		{"items copy", itemCopyJSON{}},
		{"items list", itemListJSON{}},
		{"items new", newItemJSON{}},
		{"items search", action.SearchResult{}},
		{"items show", action.FetchResult{}},
		{"keys generate", keyJSON{}},
		{"keys list", keyListJSON{}},
		{"keys show", keyJSON{}},
		{"keys trust", keyJSON{}},
		{"memory add", memtools.Wrote{}},
		{"memory forget", memtools.Forgotten{}},
		{"memory import", remembered.Brought{}},
		{"memory list", entryListJSON{}},
		{"memory show", memtools.Entry{}},
		{"models", modelsJSON{}},
		{"langgraph sync", syncedJSON{}},
		{"run", runJSON{}},
		{"sign", action.SignResult{}},
		{"store check", doctorJSON{}},
		{"store migrate", migrated{}},
		{"store status", storeState{}},
		{"threads approve", view.Questions{}},
		{"threads approve, with an answer", control.Approved{}},
		{"threads cancel", stop.Stopped{}},
		{"threads chain", view.Chain{}},
		{"threads chain --search", view.ChainMatches{}},
		{"threads cost", costJSON{}},
		{"threads health", health.Report{}},
		{"threads kill", stop.Stopped{}},
		{"threads delete", tidy.Deleted{}},
		{"threads cleanup", tidy.Cleaned{}},
		{"threads vacuum", tidy.Vacuumed{}},
		{"threads list", view.List{}},
		{"threads list --tree", board.Board{}},
		{"threads reconcile", health.Reconciliation{}},
		{"threads resume", resumedJSON{}},
		{"threads show", statusJSON{}},
		{"threads wait", view.WaitResult{}},
		{"trust", trustJSON{}},
		{"trust --adopt-state", adoptionJSON{}},
		{"validate", validate.Report{}},
		{"version", versionJSON{}},
		{"workers list", workerListJSON{}},
	} {
		fmt.Fprintf(&b, "%s\n", answer.command)
		for _, line := range jsonKeys(reflect.TypeOf(answer.value)) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	golden := filepath.Join("testdata", "json_keys.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the keys of --json are\n%s\n%s has\n%s\nwhat is only more: go test ./cmd/rye-mcp/cli -update", b.String(), golden, want)
	}
}

// jsonKeys lists the keys that a struct has in JSON with the types of their
// values, sorted; those that may be left out have a question mark.
func jsonKeys(of reflect.Type) []string {
	var keys []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			keys = append(keys, jsonKeys(field.Type)...) // its keys are ours
			continue
		}
		if !field.IsExported() || name == "-" {
			continue
		}
		name = cmp.Or(name, field.Name)
		if strings.Contains(rest, "omitempty") {
			name += "?"
		}
		inner, kind := jsonType(field.Type)
		keys = append(keys, name+": "+kind)
		if kind != "string" && inner.Kind() == reflect.Struct {
			for _, below := range jsonKeys(inner) {
				keys = append(keys, name+"."+below)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// jsonType names the type that a value has in JSON; inner is the one below lists,
// maps and pointers.
func jsonType(of reflect.Type) (inner reflect.Type, name string) {
	switch of.Kind() {
	case reflect.Pointer:
		return jsonType(of.Elem())
	case reflect.Slice:
		inner, name = jsonType(of.Elem())
		return inner, "list of " + name
	case reflect.Map:
		inner, name = jsonType(of.Elem())
		return inner, "map of " + name
	case reflect.Bool, reflect.String:
		return of, of.Kind().String()
	case reflect.Interface:
		return of, "any"
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			return of, "string"
		}
		return of, "object"
	default:
		return of, "number"
	}
}
