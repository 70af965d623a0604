package guard

import (
	"crypto/sha256"
	"regexp"
	"sync"
)

// minRepeated is the length in bytes from which a reference to an earlier result
// is shorter than the result by enough to be worth a model's looking back.
const minRepeated = 400

// Given remembers what a model was given, so that it is not given the same again.
// It is safe for concurrent use; its zero value is ready.
type Given struct {
	mu    sync.Mutex
	calls map[[sha256.Size]byte]string
}

// Before returns the call that was given the same content, and remembers this
// one when there is none. Content too short for a reference to pay is not
// remembered.
func (g *Given) Before(content, call string) (earlier string, found bool) {
	if len(content) < minRepeated {
		return "", false
	}
	sum := sha256.Sum256(timeless().ReplaceAll([]byte(content), nil))
	g.mu.Lock()
	defer g.mu.Unlock()
	if earlier, found = g.calls[sum]; found {
		return earlier, true
	}
	if g.calls == nil {
		g.calls = make(map[[sha256.Size]byte]string)
	}
	g.calls[sum] = call
	return "", false
}

// timeless finds how long a call took, in which two equal results differ.
var timeless = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"duration_ms":\s*\d+`) })
