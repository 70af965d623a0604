package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Tools is config/agent/tools.yaml: what built-in tools may reach and run. No
// project has a say in it.
type Tools struct {
	Web       Web       `yaml:"web"`
	Execution Execution `yaml:"execution"`
	// Tests are commands by name, by the path of the project as it is written.
	Tests map[string]map[string]TestCommand `yaml:"tests"`
}

// Execution is what the commands of tools may reach.
type Execution struct {
	Confine      string   `yaml:"confine"`       // off, when-available or required
	Writable     []string `yaml:"writable"`      // folders beside the project; ~/ begins the home
	ShellNetwork bool     `yaml:"shell_network"` // rye/bash reaches the network
}

// Web is about the tools that use the network.
type Web struct {
	AllowHosts []string  `yaml:"allow_hosts"` // exempt from the refusal of private addresses
	UseProxy   bool      `yaml:"use_proxy"`   // of the environment
	Search     WebSearch `yaml:"search"`
}

// WebSearch chooses who is asked.
type WebSearch struct {
	Provider string `yaml:"provider"` // empty: nobody
	// Providers is the chosen one alone, by its name; Known names all of them.
	Providers map[string]SearchProvider `yaml:"providers"`
	Known     []string                  `yaml:"-"`
}

// SearchProvider says how to ask a search engine, and where in its JSON the answer
// stands: paths of keys with dots between. {query}, {count} and {key} are filled in.
type SearchProvider struct {
	URL     string            `yaml:"url"`
	Method  string            `yaml:"method"`  // empty: GET
	KeyEnv  string            `yaml:"key_env"` // variable that holds the key; empty: none is needed
	Headers map[string]string `yaml:"headers"`
	Body    map[string]any    `yaml:"body"`    // of a POST, sent as JSON
	Results string            `yaml:"results"` // the list
	Title   string            `yaml:"title"`
	Link    string            `yaml:"link"`
	Text    string            `yaml:"text"`
}

// TestCommand is a command without a shell.
type TestCommand struct {
	Command    []string          `yaml:"command"`
	WorkingDir string            `yaml:"working_dir"` // in the project; empty: its root
	Timeout    float64           `yaml:"timeout"`     // in seconds; 0: the tool's default
	Env        map[string]string `yaml:"env"`
}

// Tools reads tools.yaml. Of the search providers only the chosen one is there.
func (sn *Snapshot) Tools() (Tools, []string, error) { return sn.tools() }

func (sn *Snapshot) toolsSettings() (settings, error) { return sn.load(toolsKind) }

func (sn *Snapshot) readTools() (Tools, []string, error) {
	s, err := sn.toolsSettings()
	if err != nil {
		return Tools{}, s.warnings, err
	}
	return valuesOf(sn, toolsKind, s, func() (t Tools, _ []string, _ error) {
		if err := s.decode(&t); err != nil {
			return t, s.warnings, err
		}
		err := t.Web.Search.choose(&s)
		return t, s.warnings, err
	})
}

// choose leaves the chosen provider, which must be whole.
func (w *WebSearch) choose(s *settings) error {
	all := w.Providers
	w.Known, w.Providers = slices.Sorted(maps.Keys(all)), nil
	if w.Provider == "" {
		return nil
	}
	at := []string{"web", "search", "provider"}
	chosen, known := all[w.Provider]
	if !known {
		return s.errorAt(at, "no search provider %s; there are %s", item.Shown(w.Provider), strings.Join(item.ShownAll(w.Known), ", "))
	}
	for _, part := range []struct{ name, value string }{
		{"url", chosen.URL}, {"results", chosen.Results}, {"title", chosen.Title}, {"link", chosen.Link},
	} {
		if part.value == "" {
			return s.errorAt([]string{"web", "search", "providers", w.Provider}, "%s is missing", part.name)
		}
	}
	w.Providers = map[string]SearchProvider{w.Provider: chosen}
	return nil
}

// Chosen is the provider that is asked, if there is one.
func (w WebSearch) Chosen() (SearchProvider, bool) {
	p, chosen := w.Providers[w.Provider]
	return p, chosen
}

// Variables names the variables that the tools read keys from.
func (t Tools) Variables() []string {
	if p, chosen := t.Web.Search.Chosen(); chosen && p.KeyEnv != "" {
		return []string{p.KeyEnv}
	}
	return nil
}
