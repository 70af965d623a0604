package cli

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const masked = "********"

// secretName finds what names a secret: of a header, or of a part of an address.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)auth|key|token|secret|cookie|passw|credential|session|signature`)
})

// Values that look like a secret whatever they are called: a scheme with
// credentials, and a long run without spaces that has digits in it.
var (
	credentials = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(bearer|basic|token)\s`) })
	longRun     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\S{20,}$`) })
	digit       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]`) })
)

func looksSecret(value string) bool {
	return credentials().MatchString(value) || longRun().MatchString(value) && digit().MatchString(value)
}

// mask hides what looks like a secret in a setting.
func mask(key []string, value any) any {
	if words, ok := value.([]any); ok && len(key) == 1 && key[0] == "api_key_command" {
		return maskWords(words)
	}
	said, ok := value.(string)
	if !ok || said == "" {
		return value
	}
	if len(key) == 2 && key[0] == "headers" {
		if secretName().MatchString(key[1]) || looksSecret(said) {
			return masked
		}
		return said
	}
	if strings.Contains(said, "://") {
		return maskAddress(said)
	}
	return said
}

// maskWords hides the arguments of a command that look like a secret.
func maskWords(words []any) []any {
	out := slices.Clone(words)
	for i, word := range out {
		if said, ok := word.(string); ok && i > 0 && looksSecret(said) {
			out[i] = masked
		}
	}
	return out
}

// maskAddress hides user name and password of an address, and what its query
// calls a secret.
func maskAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return masked // it cannot be said which part is which
	}
	if u.User != nil {
		u.User = url.User(masked)
	}
	query := u.Query()
	for name := range query {
		if secretName().MatchString(name) {
			query.Set(name, masked)
			u.RawQuery = query.Encode()
		}
	}
	shown := strings.ReplaceAll(u.String(), url.PathEscape(masked), masked)
	return strings.ReplaceAll(shown, "%7Bmodel%7D", "{model}") // as it was written
}
