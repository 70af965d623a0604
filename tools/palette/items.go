package palette

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Item is a tool item of the spaces.
type Item struct {
	ID string
	// Read returns its definition, or why it cannot be offered under a name of its
	// own. It is called for items that are allowed only.
	Read func() (tool.Definition, error)
}

// Spaces is where tool items come from.
type Spaces struct {
	Resolver *resolve.Resolver
	// Builtin are the built-in tools. An item is one of them by having its id and
	// [chain.Builtin] as its executor.
	Builtin []tool.Definition
	// Check says why another item cannot be run: nothing runs it, or it may not be
	// used. The words of an item are text for a model, so that one that may not be
	// used is not offered. Nil: no other item can be run.
	Check func(*resolve.Found) error
}

// Items lists the tool items, without those of the system space that are built
// in: an item of the project or the user may hide a built-in tool.
func (s Spaces) Items() ([]Item, error) {
	entries, err := s.Resolver.All(item.Tool)
	if err != nil {
		return nil, err
	}
	var items []Item
	seen := make(map[string]bool, len(entries))
	for _, e := range entries { // the first of an id is the one that is executed
		_, builtin := s.builtin(e.ID)
		if seen[e.ID] || builtin && e.Space == item.System {
			continue
		}
		seen[e.ID] = true
		items = append(items, Item{ID: e.ID, Read: func() (tool.Definition, error) { return s.define(e.ID) }})
	}
	return items, nil
}

func (s Spaces) builtin(id string) (tool.Definition, bool) {
	i := slices.IndexFunc(s.Builtin, func(d tool.Definition) bool { return d.ID == id })
	if i < 0 {
		return tool.Definition{}, false
	}
	return s.Builtin[i], true
}

// define reads an item.
func (s Spaces) define(id string) (tool.Definition, error) {
	found, err := s.Resolver.Find(item.Tool, id)
	if err != nil {
		return tool.Definition{}, err
	}
	doc, err := found.Tool()
	if wrong, ok := errors.AsType[*parse.Error](err); ok {
		return tool.Definition{}, fmt.Errorf("line %d of it cannot be read: %s", wrong.Line, wrong.Reason)
	}
	switch {
	case err != nil:
		return tool.Definition{}, err
	case chain.Meant(doc.ExecutorID) == chain.Builtin:
		d, known := s.builtin(id)
		if !known {
			return tool.Definition{}, errors.New("it says it is built in, but this version has no such tool")
		}
		return d, nil
	case s.Check == nil:
		return tool.Definition{}, errors.New("built-in tools only run here")
	}
	if err := s.Check(found); err != nil {
		return tool.Definition{}, err
	}
	return definition(id, doc)
}

// undeclared is told of a tool whose parameters are not known.
const undeclared = "\nIts parameters are not declared."

// told names the tool that reads items to a model that has it.
func (in Input) told(d tool.Definition) tool.Definition {
	if text, is := strings.CutSuffix(d.Description, "."); is && strings.HasSuffix(d.Description, undeclared) && holdsAction(in.effective(), "fetch") {
		d.Description = text + "; read about them with rye_fetch."
	}
	return d
}

// definition is what a model is told of an item.
func definition(id string, doc *item.ToolDoc) (tool.Definition, error) {
	d := tool.Definition{ID: id, Description: doc.Description}
	if doc.Schema == nil {
		d.Description += undeclared
	}
	schema := plainly(doc.Schema, 0)
	// Providers refuse these at the top. Their conditions are checked when the tool is
	// called.
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum", "$schema", "$id"} {
		delete(schema, keyword)
	}
	if schema["type"] == nil {
		schema["type"] = item.TypeObject
	}
	if _, ok := schema["properties"].(map[string]any); !ok {
		schema["properties"] = map[string]any{}
	}
	var err error
	if d.Schema, err = json.Marshal(schema); err != nil {
		return d, fmt.Errorf("its schema: %w", err)
	}
	return d, offerable(schema, d.Schema)
}

// unnamedError says that a tool has a parameter that not every provider takes. It can
// be called by its id.
type unnamedError struct{ parameter string }

func (e *unnamedError) Error() string {
	return fmt.Sprintf("its parameter %q has a name that not every provider takes", e.parameter)
}

// parameterName is a name that every provider takes.
var parameterName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`) })

// offerable refuses a schema for which a provider would refuse the whole request.
func offerable(schema map[string]any, raw json.RawMessage) error {
	if schema["type"] != item.TypeObject {
		return errors.New("its schema is not that of an object")
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !parameterName().MatchString(name) {
			return &unnamedError{name}
		}
	}
	err := tool.Validate(raw, json.RawMessage("{}"))
	if _, misfit := errors.AsType[*tool.Fault](err); err != nil && !misfit {
		return fmt.Errorf("its schema is no JSON Schema: %w", err)
	}
	return nil
}
