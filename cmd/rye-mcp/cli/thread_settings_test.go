package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

// A thread goes by what its start has decided, whatever becomes of the files. Where
// a starter hands over nothing, as that of the version before does, or knows other
// keys, the files are read. Settings that thread.json does not name are refused.
func TestSettingsOfAThread(t *testing.T) {
	t.Parallel()
	roots := resolve.Roots{User: t.TempDir(), System: system.FS()}
	file := filepath.Join(roots.User, ".ai", "config", "agent", "resilience.yaml")
	write := func(content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("retry: {max_attempts: 4}\n")
	loader := config.New(roots)
	handed, err := loader.Read().Decide()
	if err != nil {
		t.Fatal(err)
	}
	write("retry: {max_attempts: 6}\n")
	older := []byte(strings.Replace(string(handed), `"form":"`, `"form":"0`, 1))
	for name, c := range map[string]struct {
		handed []byte
		hash   string
		want   int // attempts; 0: refused
	}{
		"decided":                   {handed, config.HashDecided(handed), 4},
		"of a starter before":       {nil, "", 6},
		"sealed, started by before": {nil, config.HashDecided(handed), 6},
		"of another version":        {older, config.HashDecided(older), 6},
		"not sealed":                {handed, "", 0},
		"of another thread":         {handed, config.HashDecided(older), 0},
		"garbage":                   {[]byte("{"), config.HashDecided([]byte("{")), 0},
	} {
		settings, err := settingsOf(loader, thread.Meta{SettingsHash: c.hash}, c.handed)
		if err != nil {
			if c.want != 0 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got, err := loopSettings(settings, newGate(System{Getenv: func(string) string { return "" }}, roots).With(settings.Integrity))
		if err != nil || got.Retry.MaxAttempts != c.want {
			t.Errorf("%s: %d attempts, %v, want %d", name, got.Retry.MaxAttempts, err, c.want)
		}
	}
}

// A thread that is handed its settings opens no settings file.
func TestDecidedReadsNoFile(t *testing.T) {
	t.Parallel()
	loader := config.New(resolve.Roots{User: t.TempDir(), Project: t.TempDir(), System: system.FS()})
	handed, err := loader.Read().Decide()
	if err != nil {
		t.Fatal(err)
	}
	loader.Seen = &config.Seen{
		File:   func(path string) { t.Errorf("%s was read", path) },
		Merged: func(kind string) { t.Errorf("%s was merged", kind) },
	}
	settings, err := settingsOf(loader, thread.Meta{SettingsHash: config.HashDecided(handed)}, handed)
	if err != nil {
		t.Fatal(err)
	}
	p := &project{config: loader, decided: settings}
	s, err := loopSettings(settings, newGate(System{Getenv: func(string) string { return "" }}, resolve.Roots{}).With(p.integrity))
	if err != nil {
		t.Fatal(err)
	}
	_, _, hooks := s.Hooks()
	_, _, rules := s.ErrorRules()
	_, mode := p.integrity()
	_, _, provider := settings.Provider("anthropic")
	if err := errors.Join(hooks, rules, mode, provider); err != nil {
		t.Error(err)
	}
}
