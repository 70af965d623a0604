package chain

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// resolvedConfig is the parameter in which a tool gets the settings that it asked for
// with config_resolve.
const resolvedConfig = "resolved_config"

// resolveConfig adds the tool's settings to its parameters. They come from the files
// of all spaces, as far as those count.
func (m *making) resolveConfig(context.Context) error {
	s := m.specs[0].Resolve
	if s == nil {
		return nil
	}
	t := m.chain.Tool()
	if s.Mode != "" && s.Mode != deepMerge && s.Mode != firstMatch {
		return tool.Faultf(tool.CodeInvalidItem, "config_resolve of %s has the mode %q; there are %s and %s", t.ID, s.Mode, deepMerge, firstMatch).With("path", t.Path)
	}
	layers, err := m.builder.World.Settings(s.Path)
	if err != nil {
		return fmt.Errorf("settings of %s: %w", t.ID, err)
	}
	resolved := map[string]any{}
	for i, layer := range layers { // from the system's to the project's
		if s.Mode == firstMatch && i < len(layers)-1 {
			continue
		}
		resolved = merge(resolved, layer.Values)
		m.plan.Steps[0].Settings = append(m.plan.Steps[0].Settings, layer.Path)
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(m.plan.Params, &params); err != nil {
		return err
	}
	if params[resolvedConfig], err = json.Marshal(resolved); err != nil {
		return err
	}
	m.plan.Params, err = json.Marshal(params)
	m.values.params[resolvedConfig], m.values.params["params_json"] = resolved, string(m.plan.Params)
	return err
}
