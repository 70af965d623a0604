package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	calls map[string]string
}

// sumBytes of a hash are enough to name a content in a conversation.
const sumBytes = 16

// Before returns the call that was given the same content, and remembers this
// one when there is none. Sum names the content. One too short for a reference to pay
// has no sum and is not remembered.
func (g *Given) Before(content, call string) (earlier, sum string, found bool) {
	if len(content) < minRepeated {
		return "", "", false
	}
	hash := sha256.Sum256(timeless().ReplaceAll([]byte(content), nil))
	sum = hex.EncodeToString(hash[:sumBytes])
	g.mu.Lock()
	defer g.mu.Unlock()
	if earlier, found = g.calls[sum]; found {
		return earlier, sum, true
	}
	if g.calls == nil {
		g.calls = make(map[string]string)
	}
	g.calls[sum] = call
	return "", sum, false
}

// Reference stands in place of a result that an earlier call was given.
func Reference(earlier string) string {
	return fmt.Sprintf("[the same as the result of your call %s, which is not repeated]", earlier)
}

// timeless finds how long a call took, in which two equal results differ.
var timeless = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"duration_ms":\s*\d+`) })
