// Package placetest makes places for tests.
package placetest

import (
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Place is the id of the places that [Seal] is for.
var Place = strings.Repeat("0123456789abcdef", 2)

// Seal is that of a place whose state key is key.
func Seal(key *sign.Key) *place.Seal { return place.NewSeal(key, Place) }

// NewSeal is [Seal] of a new key.
func NewSeal(t testing.TB) *place.Seal {
	t.Helper()
	key, err := sign.Generate(t.TempDir(), false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Seal(key)
}

// Make makes the state of a project for the user of a user space, who has no item
// key. Several processes that do so get the same.
func Make(project, user string) (place.State, error) {
	return place.Finder{
		User: user, Now: time.Now, Item: func() (*sign.PublicKey, error) { return nil, nil },
	}.Make(project)
}

// Dir is where the state of a project is that no stranger has left any in.
func Dir(project string) string { return filepath.Join(project, ".ai", "state", "threads") }
