package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newConfigCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at the settings, and change them",
		Long: `Settings are YAML files of the program, of your user space and of the project; the later
ones win, and those of a project count once you have accepted them (rye-mcp trust).
"rye-mcp help settings" says what there is to set.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigShowCommand(sys, opts), newConfigSetCommand(sys, opts), newConfigEditCommand(sys, opts))
	return cmd
}

func newConfigShowCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	complete := completer{sys: sys, opts: opts}
	cmd := &cobra.Command{
		Use:   "show [SETTINGS]",
		Short: "Show the settings as all spaces give them, and where each value comes from",
		Long: `Show the settings as system, user and project space give them together, and the
file and line that decided each value. Keys of providers are read from variables
and never shown; what looks like a secret in an address or header is masked.`,
		Example: `  rye-mcp config show agent
  rye-mcp config show providers/anthropic`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: complete.settings,
		RunE: shows(func(_ *cobra.Command, args []string) error {
			return showConfig(sys, *opts, args, asJSON)
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// configJSON is what config show writes with --json.
type configJSON struct {
	Success  bool           `json:"success"` // no file has an error
	Settings []settingsJSON `json:"settings"`
}

type settingsJSON struct {
	Name     string      `json:"name"`
	Values   []valueJSON `json:"values"`
	Warnings []string    `json:"warnings,omitempty"`
	LeftOut  []string    `json:"left_out,omitempty"` // what of the project does not count
	Error    string      `json:"error,omitempty"`
	Try      string      `json:"try,omitempty"` // what to do about the error
}

type valueJSON struct {
	Key   string     `json:"key"` // dots between its parts
	Value any        `json:"value"`
	Space item.Space `json:"space,omitempty"` // empty: no file says it
	Path  string     `json:"path,omitempty"`
	Line  int        `json:"line,omitempty"`
	Set   *bool      `json:"set,omitempty"` // of a variable: whether it has a value
}

func showConfig(sys System, opts options, names []string, asJSON bool) error {
	settings, err := readSettings(sys, opts)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names, err = settings.SettingsNames(); err != nil {
			return err
		}
	}
	shown := configJSON{Success: true}
	for _, name := range names {
		s, err := explainSettings(sys, settings, name)
		if err != nil {
			return err
		}
		shown.Success = shown.Success && s.Error == ""
		shown.Settings = append(shown.Settings, s)
	}
	return conclude(sys, asJSON, shown, shown.Success, func() error {
		return writeConfig(sys, newDisplay(sys, opts), shown)
	})
}

// readSettings reads the settings of a project, which need not have a .ai
// folder.
func readSettings(sys System, opts options) (*config.Snapshot, error) {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return nil, err
	}
	if _, err := canonical(dir); err != nil {
		return nil, err
	}
	if _, err := userSpace(sys); err != nil {
		return nil, err
	}
	_, roots := completer{sys: sys, opts: &opts}.spaces()
	return config.New(roots).Read(), nil
}

// explainSettings returns an error for a name that is not known; the answer tells
// what is wrong with the files.
func explainSettings(sys System, settings *config.Snapshot, name string) (settingsJSON, error) {
	s := settingsJSON{Name: name, Values: []valueJSON{}}
	explained, err := settings.Explain(name)
	var unknown *config.UnknownSettingsError
	if errors.As(err, &unknown) && slices.Contains(config.WritableNames(), name) {
		return s, tool.Faultf(tool.CodeNotFound, "settings %s are no single values that are merged", name).WithHint("%s", lookAt(name))
	}
	if unknown != nil {
		return s, tool.Faultf(tool.CodeNotFound, "%w", err).
			WithHint("%s", strings.TrimSpace("rye-mcp config show "+unknown.Nearest))
	}
	if err != nil {
		s.Error, s.Try = err.Error(), "mend the file, then rye-mcp config show "+name
		if wrong, is := errors.AsType[*config.Error](err); is && wrong.LeftOut {
			s.Try = acceptWith(sys)
		}
	}
	s.Warnings = explained.Warnings
	for _, n := range explained.LeftOut {
		s.LeftOut = append(s.LeftOut, n.Fact())
	}
	for _, v := range explained.Values {
		s.Values = append(s.Values, shownValue(sys, v))
	}
	return s, nil
}

// lookAt is the command that tells how the settings of a name are.
func lookAt(name string) string {
	switch name {
	case config.HookSettings:
		return "rye-mcp hooks explain DIRECTIVE"
	case config.ErrorSettings:
		return "rye-mcp help settings"
	}
	return "rye-mcp config show " + name
}

// shownValue masks what must not be seen, and looks whether a variable is set.
func shownValue(sys System, v config.Value) valueJSON {
	shown := valueJSON{Key: strings.Join(v.Key, "."), Value: mask(v.Key, v.Value), Space: v.Space, Path: v.Path, Line: v.Line}
	if name, ok := v.Value.(string); ok && strings.HasSuffix(shown.Key, "_env") {
		set := sys.Getenv(name) != ""
		shown.Set = &set
	}
	return shown
}

// widestValue is how many columns a value may take; whole lists are shown by
// --json.
const widestValue = 80

func writeConfig(sys System, d display, shown configJSON) error {
	for i, s := range shown.Settings {
		if i > 0 {
			if _, err := fmt.Fprintln(d.out); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(d.out, d.paint(cyan, s.Name)); err != nil {
			return err
		}
		if err := writeValues(d, s.Values); err != nil {
			return err
		}
		for _, w := range slices.Concat(s.Warnings, s.LeftOut) {
			_, _ = fmt.Fprintf(sys.Stderr, "Warning: %s\n", plain.Line(w))
		}
		if len(s.LeftOut) > 0 {
			_, _ = fmt.Fprintln(sys.Stderr, "Try:   "+acceptWith(sys))
		}
		if s.Error != "" {
			say(sys.Stderr, plain.Line(s.Error), s.Try)
		}
	}
	return nil
}

// writeValues writes each value with the file and line that decided it, which are
// never cut off: where a line would be wider than the terminal they stand below.
func writeValues(d display, values []valueJSON) error {
	var whole, narrow table
	for _, v := range values {
		key, value, origin := text(v.Key), text(plain.Shorten(v.text(), widestValue)), cell{v.origin(), dim}
		whole.add(key, value, origin)
		narrow.add(key, value)
	}
	if d.width == 0 || whole.width() <= d.width {
		return whole.write(d)
	}
	var b strings.Builder
	if err := narrow.write(display{out: &b, width: d.width, colors: d.colors}); err != nil {
		return err
	}
	i := 0
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintf(d.out, "%s    %s\n", line, d.paint(dim, plain.Line(values[i].origin()))); err != nil {
			return err
		}
		i++
	}
	return nil
}

// text is the value on one line.
func (v valueJSON) text() string {
	said, ok := v.Value.(string)
	if raw, err := json.Marshal(v.Value); err == nil && (!ok || said == "") {
		said = string(raw)
	}
	switch {
	case v.Set == nil || v.Value == "":
		return said
	case *v.Set:
		return said + " (is set)"
	default:
		return said + " (is not set)"
	}
}

func (v valueJSON) origin() string {
	switch {
	case v.Path == "":
		return "built in"
	case v.Space == item.System: // the path says it
		return fmt.Sprintf("%s:%d", v.Path, v.Line)
	default:
		return fmt.Sprintf("%s: %s:%d", v.Space, v.Path, v.Line)
	}
}
