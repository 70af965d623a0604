package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// providerName keeps the name of a provider a plain file name.
var providerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`) })

// Provider reads the settings of a model provider. Without such a provider the
// error is a [*NotFoundError].
func (sn *Snapshot) Provider(name string) (Provider, []string, error) {
	p, s, err := sn.provider(name)
	return p, s.warnings, err
}

func (sn *Snapshot) provider(name string) (Provider, settings, error) {
	known := sn.providers.get(name, func() loadedProvider {
		p, s, err := sn.readProvider(name)
		return loadedProvider{p, s, err}
	})
	return known.provider, known.settings, known.err
}

// loadedProvider is what came of reading a provider.
type loadedProvider struct {
	provider Provider
	settings settings
	err      error
}

func (sn *Snapshot) readProvider(name string) (Provider, settings, error) {
	p := Provider{Name: name}
	if !providerName().MatchString(name) {
		return p, settings{}, sn.noProvider(name)
	}
	s, err := sn.load(providerKind(name))
	if err != nil {
		return p, s, err
	}
	if len(s.layers) == 0 {
		return p, s, sn.noProvider(name, s.leftOut...)
	}
	p, _, err = valuesOf(sn, providerKind(name), s, func() (Provider, []string, error) {
		p, err := s.provider(name)
		return p, nil, err
	})
	return p, s, err
}

// provider is what the files of a provider say.
func (s *settings) provider(name string) (Provider, error) {
	p := Provider{Name: name}
	if err := s.decode(&p); err != nil {
		return p, err
	}
	if p.ToolUse == "" {
		p.ToolUse = ToolUseNative
	}
	return p, p.validate(s)
}

// validate checks what only the merged settings can tell.
func (p *Provider) validate(s *settings) error {
	switch {
	case p.API == "":
		return s.lack("api", fmt.Sprintf("want %s, %s or %s", APIAnthropic, APIOpenAI, APIScripted))
	case p.API == APIScripted && p.Script == "":
		return s.lack("script", "api scripted needs the script to answer from")
	case p.API == APIOpenAI && p.BaseURL == "":
		return s.lack("base_url", "api openai needs it")
	case p.APIKeyScheme != "" && p.APIKeyHeader == "":
		return s.errorAt([]string{"api_key_scheme"}, "needs the api_key_header that it goes into")
	case p.Wire != "" && p.API == APIAnthropic:
		return s.errorAt([]string{"wire"}, "api anthropic has one protocol; leave it out")
	case len(p.APIKeyCommand) > 0 && !isProgram(p.APIKeyCommand[0]):
		return s.errorAt([]string{"api_key_command"}, "want the name of a program or its whole path, and its arguments, each a word of the list")
	}
	for _, alias := range slices.Sorted(maps.Keys(p.Aliases)) {
		if _, ok := p.Tiers[p.Aliases[alias]]; !ok {
			return s.errorAt([]string{"aliases", alias}, "no tier %q; there are %s",
				item.Shown(p.Aliases[alias]), strings.Join(item.ShownAll(slices.Sorted(maps.Keys(p.Tiers))), ", "))
		}
	}
	return nil
}

// isProgram reports whether a word names one program wherever it is run. The project
// would say where a relative path leads.
func isProgram(word string) bool {
	return word != "" && (filepath.IsAbs(word) || !strings.ContainsAny(word, " /\\"))
}

// lack says that a key has no value, and whether that is because the user has not
// accepted it.
func (s *settings) lack(key, why string) error {
	for _, n := range s.leftOut {
		if len(n.Key) == 1 && n.Key[0] == key {
			return &Error{Path: n.Path, Line: n.Line, LeftOut: true,
				Reason: key + ": left out, as the person has not accepted it; " + why}
		}
	}
	return s.errorAt([]string{key}, "missing; %s", why)
}

func (sn *Snapshot) noProvider(name string, leftOut ...Notice) error {
	known, err := sn.ProviderNames()
	if err != nil {
		return err
	}
	return &NotFoundError{Provider: name, Known: known, LeftOut: leftOut}
}

// ProviderNames lists the model providers of all spaces, sorted; a project's are
// those that its user has accepted.
func (sn *Snapshot) ProviderNames() ([]string, error) { return sn.names() }

func (sn *Snapshot) readProviderNames() ([]string, error) {
	var names []string
	for _, place := range sn.own {
		found, err := providersIn(place)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	project := sn.project()
	found, err := project.providers()
	if err != nil {
		return nil, err
	}
	for _, name := range found {
		if places, _ := project.whole(providerKind(name).files[0]); len(places) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func providersIn(from place) ([]string, error) {
	files, err := from.list(providersDir)
	if err != nil {
		return nil, fmt.Errorf("list model providers: %w", err)
	}
	var names []string
	for _, file := range files {
		name, ok := strings.CutSuffix(file, ".yaml")
		if ok && providerName().MatchString(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// providers are the providers of a project, whether or not they count.
func (p project) providers() ([]string, error) {
	var names []string
	for _, from := range []place{p.present, p.accepted} {
		if from == nil {
			continue
		}
		found, err := providersIn(from)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
