package chain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Keys are the keys of a YAML tool that something reads.
func Keys() []string {
	return []string{
		"version", "tool_type", "executor_id", "category", "description", "config_schema", "input_schema", "parameters",
		"config", "env_config", "anchor", "verify_deps", "config_resolve", "warm", "shell", "defaults", "runs",
		"network", "writable", "credentials",
	}
}

// configKeys are those of the primitive that runs processes. Other keys of its
// configuration are values for templates.
var configKeys = []string{"command", "args", "warm_args", "function_args", "cwd", "env", "timeout", "input_data", "function_input"}

// argLists are those of them that are arguments of the command: to run the tool, to keep it
// warm, and to call the function that it only exports.
var argLists = []string{"args", "warm_args", "function_args"}

// Examine is [Builder.Build] whatever the signatures are, for whoever is about to sign
// an item.
func (b *Builder) Examine(found *resolve.Found) (*Chain, error) {
	unchecked := &trust.Gate{Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil }}
	return b.build(found, unchecked)
}

// configure merges the configurations of a chain, the tool's last, and refuses a tool
// that leaves open what its runtimes run.
func (b *Builder) configure(c *Chain) error {
	specs := make([]spec, len(c.Elements))
	for i, e := range c.Elements {
		var err error
		if specs[i], err = b.specOf(e); err != nil {
			return err
		}
	}
	key, _ := shellOf(specs)
	for i, s := range slices.Backward(specs) {
		own := s.Config
		if i == 0 && key != "" && own[key] != nil {
			own = maps.Clone(own)
			delete(own, key) // it is the text of a command, and not the program
		}
		c.Config = merge(c.Config, own)
	}
	if err := c.checkTimeout(); err != nil || c.isScript() {
		return err
	}
	if err := c.checkShell(specs); err != nil {
		return err
	}
	return c.checkProgram(specs)
}

// shellOf is the key of the command line that the runtimes of a chain run, and which of
// its elements runs it; empty when none does.
func shellOf(specs []spec) (key string, at int) {
	for i, s := range specs {
		if i > 0 && s.Shell != "" {
			return s.Shell, i
		}
	}
	return "", 0
}

// checkShell refuses a YAML tool of a shell that has no command line, or that replaces
// the arguments by which the shell gets it. A shell would run the file of the tool, or
// what a caller names.
func (c *Chain) checkShell(specs []spec) error {
	key, at := shellOf(specs)
	if key == "" {
		return nil
	}
	runtime, own := c.Elements[at].ID, specs[0].Config
	for _, args := range argLists {
		if own[args] != nil {
			return c.invalid("config.%s of %s would replace the arguments by which %s runs config.%s", args, c.Tool().ID, runtime, key).
				WithHint("Write the arguments into config.%s, as in: %s: echo {name} done. A program without a shell has the executor_id %s.", key, key, Subprocess)
		}
	}
	if line, _ := own[key].(string); strings.TrimSpace(line) != "" {
		return nil
	}
	if properties, _ := c.Tool().Doc.Schema["properties"].(map[string]any); own[key] == nil && properties[key] != nil {
		return nil // the call says it
	}
	return c.invalid("%s names no `config.%s`, a text, for %s to run%s", c.Tool().ID, key, runtime, c.slip(own, key)).
		WithHint("Write config: {%s: …} into the item.", key)
}

// checkProgram refuses a YAML tool of a runtime that runs the tool's own file, where the
// tool does not say what else to run.
func (c *Chain) checkProgram(specs []spec) error {
	for i, s := range specs {
		if len(s.Runs) > 0 && !slices.Contains(s.Runs, c.Tool().Ext) {
			return c.invalid("%s is YAML, and %s runs a program (%s), which it has not", c.Tool().ID, c.Elements[i].ID, strings.Join(s.Runs, " ")).
				WithHint("Put the program into %s%s, or say what to run with config.args.", c.Tool().ID, s.Runs[0])
		}
		if s.Config["args"] != nil { // in the place of those that name the file
			return nil
		}
	}
	return nil
}

// CheckCommand refuses a configuration without the program that a process runs.
func (c *Chain) CheckCommand() error {
	if command, _ := c.Config["command"].(string); command == "" {
		return c.invalid("%s names no `config.command`, a text, to run%s", c.Tool().ID, c.slip(c.Config, "command"))
	}
	for _, key := range argLists {
		if _, isList := c.Config[key].([]any); !isList && c.Config[key] != nil {
			return c.invalid("config.%s of %s is no list", key, c.Tool().ID)
		}
	}
	return nil
}

// checkTimeout refuses a time limit that is none, unless it is known by the call alone.
func (c *Chain) checkTimeout() error {
	value := c.Config["timeout"]
	if template, isText := value.(string); isText && strings.ContainsAny(template, "{$") {
		return nil
	}
	_, err := c.timeoutOf(value)
	return err
}

// timeoutOf is a time limit of the configuration; 0 where it has none.
func (c *Chain) timeoutOf(value any) (time.Duration, error) {
	if value == nil {
		return 0, nil
	}
	var seconds float64
	if err := json.Unmarshal([]byte(TextOf(value)), &seconds); err != nil || seconds <= 0 || seconds > maxTimeout {
		return 0, c.invalid("the timeout of %s is %s; it must be more than 0 and at most %d seconds", c.Tool().ID, item.Shown(TextOf(value)), maxTimeout)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func (c *Chain) invalid(format string, args ...any) *tool.Fault {
	return tool.Faultf(tool.CodeInvalidItem, format, args...).With("path", c.Tool().Path)
}

// slip names the key of a tool that was probably meant for one of its configuration.
func (c *Chain) slip(own map[string]any, key string) string {
	for _, name := range slices.Sorted(maps.Keys(c.Tool().Doc.Metadata)) {
		if _, near := UnknownKey(name); near == "config" && c.Tool().Doc.Metadata["config"] == nil || near == "config."+key {
			return fmt.Sprintf("; did you mean %s by %s?", near, item.Shown(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if name != key && !slices.Contains(configKeys, name) && tool.Nearest(name, configKeys) == key {
			return fmt.Sprintf("; did you mean %s by config.%s?", key, item.Shown(name))
		}
	}
	return ""
}

// described are keys that tell people of a tool, and that nothing reads.
var described = []string{"name", "title", "author", "tags", "license", "notes", "created_at", "updated_at", "metadata", "examples", "homepage", "deprecated"}

// UnknownKey says why nothing reads a key of a YAML tool, and what may have been meant;
// both are empty for a key that something reads.
func UnknownKey(key string) (why, near string) {
	switch {
	case slices.Contains(Keys(), key), slices.Contains(described, key):
		return "", ""
	case slices.Contains(configured, key):
		return fmt.Sprintf("the key %s stands beside config, where nobody reads it", key), "config." + key
	}
	return fmt.Sprintf("nobody reads the key %s", item.Shown(key)), tool.Nearest(key, Keys())
}

// configured are keys that belong into config.
var configured = append([]string{"url", "method", "headers", "query", "body", "auth", "retry", "server", "tool_name"}, configKeys...)
