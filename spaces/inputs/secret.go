package inputs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// The length of a secret, in bytes. Shorter ones would stand in many texts by
// chance, which could not be read any more with all of them hidden.
const (
	MinSecret = 8
	MaxSecret = 64 << 10
)

// Placeholder stands for the value of a secret input wherever the value itself
// must not be.
func Placeholder(name string) string { return "{secret:" + name + "}" }

var secretPlaceholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{secret:[A-Za-z0-9_.-]+\}`) })

// Placeholders are the placeholders of secrets in a text.
func Placeholders(text string) []string { return secretPlaceholder().FindAllString(text, -1) }

// checkSecret returns the value of a secret input, or what is wrong with it in
// words that do not repeat it.
func checkSecret(doc *item.DirectiveDoc, in item.Input, raw any) (value, wrong string) {
	value, isText := raw.(string)
	switch {
	case !isText:
		return "", in.Name + " must be a string; it is secret, so its value is not shown"
	case len(strings.TrimSpace(value)) < MinSecret:
		return "", fmt.Sprintf("%s is secret and must have at least %d characters, or it could not be kept out of texts that hold the same by chance",
			in.Name, MinSecret)
	case len(value) > MaxSecret:
		return "", fmt.Sprintf("%s is secret and may have at most %d bytes", in.Name, MaxSecret)
	case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
		return "", in.Name + " is secret and must be text: valid UTF-8 without NUL bytes"
	case len(Placeholders(value)) > 0:
		return "", fmt.Sprintf("%s holds the placeholder of a secret that nobody here knows, and not a value", in.Name)
	}
	for _, other := range doc.Inputs {
		if strings.Contains(Placeholder(other.Name), value) {
			return "", fmt.Sprintf("%s cannot be told from the placeholder %s; it must have another value", in.Name, Placeholder(other.Name))
		}
	}
	return value, ""
}

// Shown is a copy of validated inputs for people and models who ask what would
// be done: that there is a secret, and nothing to use in its place.
func Shown(doc *item.DirectiveDoc, values map[string]any) map[string]any {
	shown := maps.Clone(values)
	for _, in := range doc.Inputs {
		if _, given := values[in.Name]; given && in.Secret {
			shown[in.Name] = map[string]any{"secret": true}
		}
	}
	return shown
}

// Secrets are the names of the secret inputs that have a value, in the order of
// the directive.
func Secrets(doc *item.DirectiveDoc, values map[string]any) []string {
	var names []string
	for _, in := range doc.Inputs {
		if _, given := values[in.Name]; given && in.Secret {
			names = append(names, in.Name)
		}
	}
	return names
}

// repeated tells which inputs that everybody may see hold the value of a secret.
func repeated(doc *item.DirectiveDoc, values map[string]any, secrets map[string]string) []string {
	var problems []string
	for _, in := range doc.Inputs {
		for _, name := range slices.Sorted(maps.Keys(secrets)) {
			if !in.Secret && strings.Contains(item.Text(values[in.Name]), secrets[name]) {
				problems = append(problems, fmt.Sprintf("%s holds the value of %s, which is secret", in.Name, name))
			}
		}
	}
	return problems
}

// ReplacePlaceholders puts what replace returns in the place of each placeholder
// of a secret.
func ReplacePlaceholders(text string, replace func(placeholder string) string) string {
	return secretPlaceholder().ReplaceAllStringFunc(text, replace)
}
