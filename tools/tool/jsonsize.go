package tool

import "encoding/json"

// JSONSize is what a text takes in a JSON result, in bytes. Escapes count: a
// control character takes six.
func JSONSize(s string) int {
	encoded, err := json.Marshal(s)
	if err != nil { // never: every string marshals
		return 6 * len(s)
	}
	return len(encoded)
}
