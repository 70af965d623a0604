package item

import (
	"net/url"
	"strings"
)

// PointerKeys splits a JSON pointer as version 5 of jsonschema writes it: in the form for URI
// fragments (RFC 6901, section 6).
func PointerKeys(pointer string) []string {
	if pointer == "" {
		return nil
	}
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, key := range keys {
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		keys[i] = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~") // in this order: ~01 is ~1
	}
	return keys
}
