//go:build linux || darwin

package process

import "sync"

// MaxTail is how many bytes a [Tail] keeps that says nothing else.
const MaxTail = 4 << 10

// Tail keeps the end of what is written to it, such as the last diagnostics of a
// command. The zero value is empty. It is safe for concurrent use.
type Tail struct {
	Max int // bytes that are kept; 0: [MaxTail]

	mu   sync.Mutex
	kept []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := positive(t.Max, MaxTail)
	t.kept = append(t.kept, p[max(0, len(p)-most):]...)
	t.kept = t.kept[max(0, len(t.kept)-most):]
	return len(p), nil
}

// String is what was kept; it can begin within a character.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

func (t *Tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = nil
}
