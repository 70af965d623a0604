package secret

import (
	"regexp"
	"strings"
	"sync"
)

// keyShapes finds keys by how they look: those of model providers, code hosts, clouds,
// chat programs and registries, private keys, and credentials in headers and addresses.
// No class has a quote or a backslash at its end, so that what is taken out of JSON leaves JSON.
var keyShapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:` + strings.Join([]string{
		`sk-[A-Za-z0-9_-]{16,}`,
		`(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}`,
		`gh[pousr]_[A-Za-z0-9]{20,}`, `github_pat_[A-Za-z0-9_]{20,}`, `glpat-[A-Za-z0-9_-]{16,}`,
		`(?:AKIA|ASIA)[A-Z0-9]{16}`, `AIza[A-Za-z0-9_-]{30,}`, `ya29\.[A-Za-z0-9_-]{20,}`,
		`xox[abprs]-[A-Za-z0-9-]{10,}`, `hf_[A-Za-z0-9]{20,}`, `npm_[A-Za-z0-9]{30,}`, `tvly-[A-Za-z0-9-]{16,}`,
		`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
	}, "|") + `)` +
		`|-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\,:-]*?-----END [A-Z ]*PRIVATE KEY-----` +
		`|(?i:authorization\\?["']?\s*[:=]\s*\\?["']?(?:bearer|basic|token)\s+[A-Za-z0-9._~+/=-]{8,})` +
		`|(?i:\bbearer\s+[A-Za-z0-9._~+/=-]{16,})`)
})

// removed stands where something looked like a secret.
const removed = "[secret removed]"

// RemoveShaped takes out of a text what looks like a key of a well-known service, and
// returns how many of them there were. JSON stays JSON.
func RemoveShaped(text string) (clean string, taken int) {
	return keyShapes().ReplaceAllStringFunc(text, func(string) string {
		taken++
		return removed
	}), taken
}
