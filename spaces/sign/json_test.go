package sign_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

type document struct {
	Name  string         `json:"name"`
	Count int            `json:"count"`
	Extra map[string]any `json:"extra,omitempty"`
}

func TestSignedRoundTrip(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	want := document{Name: "a <b> & \u2028", Count: 1<<53 - 1, Extra: map[string]any{"x": 0.1, "nested": []any{"y", nil}}}
	data, err := sign.EncodeSigned(want, key)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sign.EncodeSigned(want, key)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, again) {
		t.Error("the same document encodes differently")
	}
	var got document
	if err := sign.OpenSigned(data, key.Public(), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEncodeUnsigned(t *testing.T) {
	t.Parallel()
	data, err := sign.EncodeSigned(document{Name: "n"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"count":0,"name":"n"}`; string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
	var got document
	if err := sign.OpenSigned(data, testKey(t).Public(), &got); !errors.Is(err, sign.ErrUnsigned) || got.Name != "" {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"array":           []int{1},
		"null":            nil,
		"text":            "x",
		"large integer":   document{Count: 1 << 53},
		"small integer":   document{Count: -1 << 53},
		"own signature":   map[string]any{"_signature": "x"},
		"not JSON at all": map[string]any{"f": func() {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if data, err := sign.EncodeSigned(v, testKey(t)); err == nil {
				t.Errorf("encoded as %s", data)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	data, err := sign.EncodeSigned(document{Name: "n", Count: 7}, key)
	if err != nil {
		t.Fatal(err)
	}
	valid := string(data)
	other, err := sign.Generate(t.TempDir(), false, seed(1))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text string
		key        *sign.Key
		bad        bool // ErrBadSignature, rather than an error of the document
	}{
		{"altered value", strings.Replace(valid, `:7`, `:8`, 1), key, true},
		{"added member", strings.Replace(valid, `{`, `{"z":1,`, 1), key, true},
		{"other key", valid, other, true},
		{"signature not a string", `{"_signature":1}`, key, true},
		{"signature without a colon", `{"_signature":"x"}`, key, true},
		{"empty signature", `{"_signature":"` + key.Fingerprint() + `:"}`, key, true},
		{"duplicate member", strings.Replace(valid, `{`, `{"count":8,`, 1), key, false},
		{"integer that would be rounded", `{"count":9007199254740993}`, key, false},
		{"array", `[]`, key, false},
		{"null", `null`, key, false},
		{"nothing", ``, key, false},
		{"two documents", valid + valid, key, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := document{Name: "untouched"}
			err := sign.OpenSigned([]byte(tt.text), tt.key.Public(), &got)
			if err == nil {
				t.Fatal("no error")
			}
			if errors.Is(err, sign.ErrBadSignature) != tt.bad {
				t.Errorf("error %v; bad signature: want %v", err, tt.bad)
			}
			if got.Name != "untouched" {
				t.Error("the value was changed")
			}
		})
	}
}

// A document of a later version has members that this one does not know.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	data, err := sign.EncodeSigned(map[string]any{"name": "n", "later": true}, key)
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := sign.OpenSigned(data, key.Public(), &got); err != nil || got.Name != "n" {
		t.Errorf("error %v, got %+v", err, got)
	}
}

func TestReorderedDocumentVerifies(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOf(rapid.String().Filter(func(s string) bool { return s != "_signature" }), rapid.String()).Draw(t, "members")
		data, err := sign.EncodeSigned(want, key)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatal(err)
		}
		spaced, err := json.MarshalIndent(members, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if err := sign.OpenSigned(spaced, key.Public(), &got); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
	})
}

// TestEveryChangeOfADocumentIsCaught changes one byte anywhere in a signed
// document. At best that makes it an unsigned one.
func TestEveryChangeOfADocumentIsCaught(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), rapid.Int32(), 1, 4).Draw(t, "content")
		data, err := sign.EncodeSigned(content, key)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		data[at] ^= rapid.Byte().Filter(func(b byte) bool { return b != 0 }).Draw(t, "flip")
		var got map[string]any
		if sign.OpenSigned(data, key.Public(), &got) == nil {
			t.Fatalf("byte %d changed, and %s verifies", at, data)
		}
	})
}

func FuzzOpenSigned(f *testing.F) {
	key := testKey(f)
	valid, err := sign.EncodeSigned(document{Name: "n"}, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte(`{"_signature":{}}`))
	f.Add([]byte(`{"a":1e400}`))
	f.Add([]byte(`{"a":"\ud800"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var members map[string]any
		if err := sign.OpenSigned(data, key.Public(), &members); !errors.Is(err, sign.ErrUnsigned) {
			return
		}
		if err := json.Unmarshal(data, &members); err != nil {
			return
		}
		encoded, err := sign.EncodeSigned(members, key)
		if err != nil {
			t.Skip("larger than canonical JSON holds")
		}
		if err := sign.OpenSigned(encoded, key.Public(), &members); err != nil {
			t.Error(err)
		}
	})
}

func TestSignerOf(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	signed, err := sign.EncodeSigned(map[string]any{"a": 1}, key)
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string]string{
		string(signed): key.Fingerprint(), `{"a":1}`: "", `{"_signature":7}`: "", `{"_signature":"ab"}`: "ab", `[]`: "", `{`: "",
	} {
		if got := sign.SignerOf([]byte(doc)); got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}

func TestOpenSigned(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	signed, err := sign.EncodeSigned(map[string]any{"a": 1}, key)
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ A int }
	if err := sign.OpenSigned(signed, key.Public(), &v); err != nil || v.A != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
	if err := sign.OpenSigned([]byte(`{"a":1}`), key.Public(), &v); !errors.Is(err, sign.ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
	if err := sign.OpenSigned(bytes.Replace(signed, []byte("1"), []byte("2"), 1), key.Public(), &v); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("altered: %v", err)
	}
}

// A signed document is canonical, and so is what is left of it without the signature,
// wherever among the members that stands.
func TestSignatureStandsWhereItBelongs(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Z_^a-]{0,2}`)).Filter(func(s string) bool { return s != "_signature" })
		value := rapid.Custom(func(t *rapid.T) any {
			if rapid.Bool().Draw(t, "nested") {
				return map[string]any{"_signature": rapid.String().Draw(t, "inner")}
			}
			return rapid.String().Draw(t, "text")
		})
		content := rapid.MapOfN(name, value, 0, 4).Draw(t, "content")
		plain, err := sign.EncodeSigned(content, nil)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := sign.EncodeSigned(content, key)
		if err != nil {
			t.Fatal(err)
		}
		if canonical, err := jcs.Transform(signed); err != nil || !bytes.Equal(canonical, signed) {
			t.Fatalf("%s is not canonical, which is %s (%v)", signed, canonical, err)
		}
		var left json.RawMessage // what was decoded, as it stood there
		if err := sign.OpenSigned(signed, key.Public(), &left); err != nil || !bytes.Equal(left, plain) {
			t.Fatalf("%s without its signature is %s, want %s (%v)", signed, left, plain, err)
		}
	})
}
