package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

const (
	// codeLife is how long a code can be exchanged: a browser that is slow to start
	// takes some seconds.
	codeLife = time.Minute
	// shortHash is how many characters of a token's hash name it in the log.
	shortHash = 8
)

// digest is what is kept of tokens and codes.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// token is what a request may do by the token that it carries.
type token struct {
	name     string // in the log: the begin of its hash
	readOnly bool
}

// code can be exchanged for a token, once.
type code struct {
	until    time.Time
	readOnly bool
	token    digest // that it was exchanged for
	used     bool
}

// tokens are those of one process. Nothing of them is kept beyond it.
type tokens struct {
	now func() time.Time

	mu      sync.Mutex
	granted map[digest]token
	codes   map[digest]*code
}

func newTokens(now func() time.Time) *tokens {
	return &tokens{now: now, granted: map[digest]token{}, codes: map[digest]*code{}}
}

// grant makes a token.
func (t *tokens) grant(readOnly bool) (secret string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	secret, _ = t.grantLocked(readOnly)
	return secret
}

func (t *tokens) grantLocked(readOnly bool) (string, digest) {
	secret := rand.Text() + rand.Text()
	sum := digestOf(secret)
	t.granted[sum] = token{name: hex.EncodeToString(sum[:])[:shortHash], readOnly: readOnly}
	return secret, sum
}

// code makes a code for a token.
func (t *tokens) code(readOnly bool) (secret string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	secret = rand.Text()
	t.codes[digestOf(secret)] = &code{until: t.now().Add(codeLife), readOnly: readOnly}
	return secret
}

// find returns the token of a header Authorization. It compares digests, each in the
// same time.
func (t *tokens) find(authorization string) (found token, ok bool) {
	scheme, secret, _ := strings.Cut(authorization, " ")
	sum := digestOf(strings.TrimSpace(secret))
	t.mu.Lock()
	defer t.mu.Unlock()
	for known, granted := range t.granted {
		if subtle.ConstantTimeCompare(known[:], sum[:]) == 1 {
			found, ok = granted, strings.EqualFold(scheme, "Bearer")
		}
	}
	return found, ok
}

// exchanged is what became of a code.
type exchanged uint8

const (
	codeGood exchanged = iota
	codeUnknown
	codeLate
	// codeTwice: somebody else has read the code. Its token is not good any more.
	codeTwice
)

// exchange gives a token for a code. A code that comes a second time within its life
// was seen by somebody else, and nobody knows who was first: the token is withdrawn.
func (t *tokens) exchange(secret string) (bearer string, granted token, how exchanged) {
	sum := digestOf(secret)
	t.mu.Lock()
	defer t.mu.Unlock()
	c, known := t.codes[sum]
	switch {
	case !known:
		return "", token{}, codeUnknown
	case t.now().After(c.until):
		return "", token{}, codeLate
	case c.used:
		granted = t.granted[c.token]
		delete(t.granted, c.token)
		return "", granted, codeTwice
	}
	bearer, c.token = t.grantLocked(c.readOnly)
	c.used = true
	return bearer, t.granted[c.token], codeGood
}
