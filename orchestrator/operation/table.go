package operation

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// All is the table of operations, in the order in which they are listed.
var All = sync.OnceValue(func() *Table {
	t := NewTable(
		WaitThreads.Entry(), MapThreads.Entry(), GetStatus.Entry(), GetBudget.Entry(), ListActive.Entry(), ListThreads.Entry(),
		AggregateResults.Entry(), ReadTranscript.Entry(), SteerThread.Entry(), SendNote.Entry(), CancelThread.Entry(), KillThread.Entry(), ApproveThread.Entry(),
		ResumeThread.Entry(), RenameThread.Entry(), ForkThread.Entry(), HandoffThread.Entry(), GetChain.Entry(), ChainSearch.Entry(), DiffThread.Entry(), ApplyThread.Entry(), ThreadHealth.Entry(), ReconcileThreads.Entry(),
		DeleteThread.Entry(), CleanupThreads.Entry(),
	)
	t.parameters = generated
	return t
})

// Table is a list of operations.
type Table struct {
	entries    []Entry
	decode     map[string]func(params json.RawMessage) (Call, error)
	parameters json.RawMessage // schema of the parameters of all; nil: to be derived
}

// NewTable returns a table of operations.
func NewTable(entries ...Entry) *Table {
	t := &Table{entries: entries, decode: make(map[string]func(json.RawMessage) (Call, error), len(entries))}
	for _, e := range entries {
		t.decode[e.Name] = e.Decoder(func() (json.RawMessage, error) { return e.Input() })
	}
	return t
}

// Entries lists the operations.
func (t *Table) Entries() []Entry { return t.entries }

// Names lists their names.
func (t *Table) Names() []string {
	names := make([]string, len(t.entries))
	for i, e := range t.entries {
		names[i] = e.Name
	}
	return names
}

// Decode decodes the parameters of an operation.
func (t *Table) Decode(name string, params json.RawMessage) (Call, error) {
	decode, known := t.decode[name]
	if !known {
		f := tool.Faultf(tool.CodeBadArguments, "operation %.80q is not known", name).With("valid_operations", t.Names())
		if near := tool.Nearest(name, t.Names()); near != "" {
			return Call{}, f.WithHint("Did you mean %s?", near)
		}
		return Call{}, f.WithHint("Call again with one of valid_operations.")
	}
	return decode(params)
}

// texts are the descriptions for models.
//
//go:embed *.md
var texts embed.FS

func text(name string) string {
	raw, err := texts.ReadFile(name + ".md")
	if err != nil {
		panic(fmt.Sprintf("bug; operation %s has no description: %v", name, err))
	}
	return strings.TrimSpace(string(raw))
}

// Actions offers a controller and the operations of a table to the primary
// actions.
type Actions struct {
	control.Threads
	*Table
}

var _ action.Threads = Actions{}

// Operate runs an operation by its name.
func (a Actions) Operate(ctx context.Context, by action.Caller, name string, params tool.Object) (any, error) {
	call, err := a.Decode(name, params.Raw())
	if err != nil {
		return nil, err
	}
	return call.Run(ctx, a.Controller, by)
}
