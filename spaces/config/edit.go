package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// HookSettings and ErrorSettings are the names of settings that are written and
// not explained key by key.
const (
	HookSettings  = "hooks"
	ErrorSettings = "error_classification"
)

// kindNamed is the kind of settings of a name, as [Snapshot.Explain] and people call
// it.
func kindNamed(name string) (kind, error) {
	known := map[string]kind{
		AgentSettings: agentKind, CoordinationSettings: coordinationKind, ResilienceSettings: resilienceKind,
		RiskSettings: riskKind, ToolsSettings: toolsKind, HookSettings: hooksKind, ErrorSettings: errorKind,
		NotifySettings: notifyKind, MemorySettings: memoryKind, StoreSettings: storeKind, MirrorSettings: mirrorKind,
	}
	if k, ok := known[name]; ok {
		return k, nil
	}
	if provider, ok := strings.CutPrefix(name, ProviderSettings); ok && providerName().MatchString(provider) {
		return providerKind(provider), nil
	}
	names := WritableNames()
	return kind{}, &UnknownSettingsError{Name: name, Known: append(names, ProviderSettings+"NAME"), Nearest: item.Nearest(name, names)}
}

// WritableNames are the names of settings that files can be written for, beside
// those of providers.
func WritableNames() []string {
	return []string{AgentSettings, CoordinationSettings, ErrorSettings, HookSettings, MemorySettings, MirrorSettings, NotifySettings, ResilienceSettings, RiskSettings, StoreSettings, ToolsSettings}
}

// FileOf is the file of the settings of a name, below .ai/config.
func FileOf(name string) (string, error) {
	k, err := kindNamed(name)
	if err != nil {
		return "", err
	}
	return k.files[len(k.files)-1], nil
}

// CheckFile says what is wrong with the content of a file of the settings of a
// name; path is for messages.
func CheckFile(name, path string, content []byte) (warnings []string, err error) {
	k, err := kindNamed(name)
	if err != nil {
		return nil, err
	}
	l, err := parseLayer(path, content)
	if err != nil {
		return nil, err
	}
	schema, err := compileSchema(k.schema)
	if err != nil {
		return nil, err
	}
	if warnings, err = l.check(schema); err != nil {
		return warnings, err
	}
	if k.canonical != nil {
		err = k.canonical(&l)
	}
	return warnings, err
}

// CheckSnapshot returns the errors of the settings files of a project, all at once.
// A copy with one would keep every thread from starting, whatever became of the
// file.
func CheckSnapshot(roots resolve.Roots, s trust.Snapshot) error {
	var all []error
	for _, file := range slices.Sorted(maps.Keys(s.Files)) {
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		if path.Dir(file) == providersDir {
			name = ProviderSettings + name
		}
		for _, known := range []string{file, "agent/" + file} { // coordination.yaml may stand higher
			if of, err := FileOf(name); err != nil || of != known {
				continue
			}
			_, err := CheckFile(name, filepath.Join(roots.Project, ".ai", "config", filepath.FromSlash(file)), s.Files[file])
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// ErrNoKey says that a path of keys cannot be read.
var ErrNoKey = errors.New("want keys with dots between them, such as provider.default; a key that holds a dot stands in quotes")

// ParseKey takes a path of keys apart.
func ParseKey(text string) ([]string, error) {
	var keys []string
	for rest := text; ; {
		key, more, quoted := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		if strings.HasPrefix(rest, `"`) {
			if !quoted || more != "" && more[0] != '.' {
				return nil, fmt.Errorf("key %q: %w", text, ErrNoKey)
			}
		} else {
			at := strings.IndexByte(rest+".", '.')
			key, more = rest[:at], rest[at:]
		}
		if key == "" {
			return nil, fmt.Errorf("key %q: %w", text, ErrNoKey)
		}
		keys = append(keys, key)
		if more == "" {
			return keys, nil
		}
		rest = more[1:]
	}
}

// Set is the content of a settings file with another value for a key, which is
// YAML. Comments stay, and so does the order of keys; a signature does not.
func Set(content []byte, key []string, value string) ([]byte, error) {
	_, content = sign.Split(content, ".yaml")
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(content)).Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var given yaml.Node
	if err := yaml.Unmarshal([]byte(value), &given); err != nil {
		return nil, fmt.Errorf("value %s: %w", value, err)
	}
	to := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle}
	if len(given.Content) > 0 {
		to = given.Content[0]
	}
	var out bytes.Buffer
	if doc.Kind == 0 { // at most comments, which belong to no value
		doc = yaml.Node{Kind: yaml.DocumentNode}
		if comments := bytes.TrimSpace(content); len(comments) > 0 {
			out.Write(append(comments, '\n'))
		}
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		doc.Content = []*yaml.Node{{Kind: yaml.MappingNode}}
	}
	if err := put(doc.Content[0], key, to); err != nil {
		return nil, err
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// put sets the value at a path of keys below a mapping.
func put(mapping *yaml.Node, key []string, value *yaml.Node) error {
	if mapping.Kind != yaml.MappingNode {
		return fmt.Errorf("%s stands below a value that has no keys of its own", key[0])
	}
	at := 0
	for at < len(mapping.Content) && mapping.Content[at].Value != key[0] {
		at += 2
	}
	if at >= len(mapping.Content) {
		at = len(mapping.Content)
		if at == 0 {
			mapping.Style = 0 // {} is written out
		}
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key[0]}, &yaml.Node{Kind: yaml.MappingNode})
	}
	if len(key) > 1 {
		inner := mapping.Content[at+1]
		if inner.Kind == yaml.ScalarNode && inner.ShortTag() == "!!null" {
			*inner = yaml.Node{Kind: yaml.MappingNode}
		}
		return put(inner, key[1:], value)
	}
	old := mapping.Content[at+1]
	value.LineComment, value.HeadComment, value.FootComment = old.LineComment, old.HeadComment, old.FootComment
	mapping.Content[at+1] = value
	return nil
}
