// Package operation is the table of what can be done with threads by name.
//
// An [Operation] has its name, its texts, its types and its function in one
// place. From the table come the MCP tools (mcp/handler), the tool
// rye/agent/threads/orchestrator of threads, and rye-mcp threads call. All three
// decode a call once, with [Entry.Decoder], and get a [Call] that runs it.
//
// To add one: the operation and its function in a file here, its description in
// NAME.md, a line in [All], and the golden files: go test . ../../mcp/handler
// -update, go generate ../../spaces/system.
package operation

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Operation is something to do with threads. In and Out are structs that schemas
// are derived from; Out has a member success.
type Operation[In, Out any] struct {
	Name   string
	Title  string // for people
	Doc    string // for a model; left out, the text of NAME.md
	Group  Group
	Effect Effect
	// Untold are inputs that MCP clients are not told of, since few models need them.
	// Threads are, and rye/core says what they do.
	Untold []string
	// Run does it for a caller, who may be a thread, a client or a person. It, or
	// something below it, decides what a thread may do; those who call never do.
	Run func(ctx context.Context, c *control.Controller, by action.Caller, in In) (Out, error)
}

// Group says which MCP clients have a tool for an operation.
type Group string

// The groups.
const (
	Threads Group = "threads"
	Admin   Group = "admin" // how the threads of a project are, for whoever looks after it
	// Inside operations have no MCP tool: they are for threads.
	Inside Group = ""
)

// Effect says how careful to be with an operation.
type Effect uint8

// The effects, which add up.
const (
	ReadOnly    Effect = 1 << iota // changes nothing
	Destructive                    // may destroy something, and not only add
	Idempotent                     // a second call with the same arguments changes nothing more
	OpenWorld                      // reaches beyond this machine

	Looks = ReadOnly | Idempotent
)

// Has reports whether all of some effects are among these.
func (e Effect) Has(some Effect) bool { return e&some == some }

// Call is an operation with its parameters decoded.
type Call struct {
	Threads []thread.ID // that the parameters name as what the call is about
	Run     func(ctx context.Context, c *control.Controller, by action.Caller) (any, error)
}

// Entry is an operation in the table, whatever its types.
type Entry struct {
	Name, Title, Doc string
	Group            Group
	Effect           Effect
	Untold           []string
	// NamesThreads says that a call must name the threads it is about.
	NamesThreads bool
	// Input and Output derive the schemas, Input with further properties.
	Input  func(more ...tool.Text) (json.RawMessage, error)
	Output func() (json.RawMessage, error)
	// Decoder returns a function that checks parameters against a schema, which has
	// what Input has, and decodes them. The schema is compiled when it is first needed.
	Decoder func(schema func() (json.RawMessage, error)) func(params json.RawMessage) (Call, error)
}

// Entry is the operation as the table has it.
func (o Operation[In, Out]) Entry() Entry {
	doc := o.Doc
	if doc == "" {
		doc = text(o.Name)
	}
	return Entry{
		Name: o.Name, Title: o.Title, Doc: doc, Group: o.Group, Effect: o.Effect,
		Untold: o.Untold, NamesThreads: namesThreads(reflect.TypeFor[In]()),
		Input: tool.SchemaWith[In], Output: tool.SchemaFor[Out], Decoder: o.decoder,
	}
}

// namesThreads reports whether an input must name threads.
func namesThreads(input reflect.Type) bool {
	for i := range input.NumField() {
		switch f := input.Field(i); f.Tag.Get("json") {
		case "thread_id", "thread_ids":
			return true
		case "":
			if f.Anonymous && namesThreads(f.Type) {
				return true
			}
		}
	}
	return false
}

// threadsIn are the threads that an input names, in the fields of [namesThreads].
func threadsIn(input reflect.Value) (ids []thread.ID) {
	for i := range input.NumField() {
		switch f := input.Type().Field(i); f.Tag.Get("json") {
		case "thread_id":
			ids = append(ids, input.Field(i).Interface().(thread.ID)) //nolint:forcetypeassert // TestNamedThreads looks at every operation
		case "thread_ids":
			ids = append(ids, input.Field(i).Interface().([]thread.ID)...) //nolint:forcetypeassert // as above
		case "":
			if f.Anonymous {
				ids = append(ids, threadsIn(input.Field(i))...)
			}
		}
	}
	return ids
}

func (o Operation[In, Out]) decoder(schema func() (json.RawMessage, error)) func(json.RawMessage) (Call, error) {
	decode := tool.Decoder[In](o.Name, schema)
	return func(params json.RawMessage) (Call, error) {
		in, err := decode(params)
		if err != nil {
			return Call{}, err
		}
		return Call{Threads: threadsIn(reflect.ValueOf(in)), Run: func(ctx context.Context, c *control.Controller, by action.Caller) (any, error) {
			answer, err := o.Run(ctx, c, by, in)
			return answer, threads.WithAway(err)
		}}, nil
	}
}
