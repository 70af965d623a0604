package trust_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// TestAttackHugeKeyDocument: a project brings key documents whose nesting costs the TOML decoder a gigabyte.
// They are refused before they are decoded, and the worst that passes costs a few megabytes.
func TestAttackHugeKeyDocument(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	const size, most = 8 << 10, 8 << 20
	fill := strings.Repeat
	hostile := map[string]string{
		"the issue's":             fill("a.", 8000) + "b=1",
		"dots of a key":           fill("a.", 4000) + "b=1",
		"quoted dots":             fill(`"".`, 2000) + "b=1",
		"dots of a table":         "[" + fill("a.", 4000) + "b]",
		"tables of tables":        fill("[[a]]\n", 1300),
		"arrays":                  "a=" + fill("[", 8000),
		"closed arrays":           "a=" + fill("[", 4000) + fill("]", 4000),
		"inline tables":           fill("a={", 2700),
		"keys":                    fill("a=1\n", 2000),
		"keys of their own":       ownKeys(size),
		"64 dots, long names":     fill(fill("a", 120)+".", 64) + "b=1",
		"64 dots, short names":    fill("a.", 64) + "b=1\n" + fill("#", 7000),
		"64 brackets":             "a=" + fill("[", 64),
		"64 inline tables":        fill("a={", 64) + fill("}", 64),
		"long text":               "owner=\"" + fill("a", 8000),
		"long multi-line text":    "owner=\"\"\"" + fill("\n", 8000),
		"escapes":                 "owner=\"" + fill(`\u0041`, 1300) + "\"",
		"comment":                 fill("#", size),
		"number":                  "a=" + fill("1", 8000),
		"date":                    "a=" + fill("1979-05-27 ", 700),
		"nothing but line breaks": fill("\n", size),
	}
	for name, text := range hostile {
		used := alloctest.Bytes(func() {
			if _, _, err := trust.ParseDocument([]byte(text)); err == nil {
				t.Errorf("%s: it was read", name)
			}
		})
		if used > most {
			t.Errorf("%s: %d bytes cost %d", name, len(text), used)
		}
	}
}

// ownKeys are as many different keys as have room.
func ownKeys(size int) string {
	var text strings.Builder
	for i := 0; text.Len() < size-8; i++ {
		text.WriteString(string(rune('a'+i%26)) + strings.Repeat("b", i/26%7) + string(rune('a'+i/182%26)) + "=1\n")
	}
	return text.String()
}

// Real documents have keys that we do not know. They are not used, and named.
func TestUnknownKeysOfADocument(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	friend := newKey(t, 2)
	text := "category = \"keys\"\nownr = \"eve\"\n" + string(document(t, friend.Public(), "ada", nil)) + "[more]\na = 1\n"
	doc, _, err := trust.ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`the key "category" is not known and not used`, `the key "ownr" is not known and not used; owner is`,
		`the key "more" is not known and not used`, `the key "more.a" is not known and not used`,
	}
	if got := doc.Notes(); !slices.Equal(got, want) || doc.Owner != "ada" {
		t.Errorf("owner %q, notes %q", doc.Owner, got)
	}
	if _, err := (trust.Grant{Document: doc, By: h.own, At: noon}).Store(h.user, item.User); err != nil {
		t.Fatal(err)
	}
	if e := state(t, h.load(), item.User, friend); e.State != trust.Trusted || len(e.Notes) > 0 {
		t.Errorf("written as %+v", e)
	}
	h.put(item.Project, friend.Fingerprint()+".toml", []byte(text))
	if e := state(t, h.load(), item.Project, friend); len(e.Notes) != len(want) {
		t.Errorf("notes %q", e.Notes)
	}
}

// TestAttackToolSignedAsKeyDocument: the text of a key document is signed as a tool, or with an older signature that is for nothing, and put among the trusted keys.
// The key is not trusted, because a document must be signed as the one about that key.
func TestAttackToolSignedAsKeyDocument(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mallory, friend := newKey(t, 9), newKey(t, 2)
	text := document(t, mallory.Public(), "mallory", nil)
	for name, content := range map[string][]byte{
		"signed as a tool":           attach(text, ".toml", h.own, noon),
		"older signature":            older(string(text), string(text), ".toml", h.own),
		"signed about another key":   []byte(strings.Replace(string(document(t, friend.Public(), "x", h.own)), string(document(t, friend.Public(), "x", nil)), string(text), 1)),
		"signed by the key about it": document(t, mallory.Public(), "mallory", mallory),
	} {
		for _, space := range []item.Space{item.User, item.Project} {
			path := h.put(space, mallory.Fingerprint()+".toml", content)
			e := state(t, h.load(), space, mallory)
			if e.State != trust.Untrusted || e.Reason == "" || e.Path != path || e.Older != (name == "older signature") {
				t.Errorf("%s, %s space: %+v", name, space, e)
			}
		}
	}
	// The documents that the user signed before, to be signed anew, and nothing else.
	h.put(item.User, mallory.Fingerprint()+".toml", attach(text, ".toml", h.own, noon))
	entry := state(t, h.load(), item.User, mallory)
	if err := trust.Renew(h.user, entry, h.own, noon); err == nil {
		t.Error("a document that the user has not signed was renewed")
	}
	h.put(item.User, mallory.Fingerprint()+".toml", older(string(text), string(text), ".toml", h.own))
	if err := trust.Renew(h.user, entry, h.own, noon); err != nil {
		t.Fatal(err)
	}
	if e := state(t, h.load(), item.User, mallory); e.State != trust.Trusted {
		t.Errorf("renewed: %+v", e)
	}
}
