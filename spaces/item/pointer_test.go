package item

import (
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"pgregory.net/rapid"
)

func TestPointerKeys(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string][]string{
		"": nil, "/": {""}, "/a": {"a"}, "/a/0/b": {"a", "0", "b"}, "/a~1b": {"a/b"}, "/~01": {"~1"}, "/a%20b": {"a b"}, "/100%": {"100%"}, "/a//b": {"a", "", "b"},
	} {
		if got := PointerKeys(pointer); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", pointer, got, want)
		}
	}
}

// TestPointerKeysOfTheLibrary: keys come back from what the library says of a value below them;
// it says nothing of keys without a letter.
func TestPointerKeysOfTheLibrary(t *testing.T) {
	t.Parallel()
	schema := jsonschema.MustCompileString("s.json", `{"$ref": "#/$defs/v", "$defs": {"v": {"type": "object", "additionalProperties": {"$ref": "#/$defs/v"}}}}`)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringN(1, -1, -1), 1, 4).Draw(t, "keys")
		value := any(1) // which is no object
		for _, key := range slices.Backward(keys) {
			value = map[string]any{key: value}
		}
		invalid, _ := schema.Validate(value).(*jsonschema.ValidationError) //nolint:errorlint // it is not wrapped
		for len(invalid.Causes) > 0 {
			invalid = invalid.Causes[0]
		}
		if got := PointerKeys(invalid.InstanceLocation); !slices.Equal(got, keys) {
			t.Errorf("%q: %q, want %q", invalid.InstanceLocation, strings.Join(got, "|"), strings.Join(keys, "|"))
		}
	})
}
