package trust

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Bounds of a trusted-key document, which may be a stranger's. The decoder takes
// memory by the square of the dots of a key: 16 KiB of "a.a.a…" cost it a
// gigabyte. So dots and brackets are counted before, wherever they stand, since
// what is a key and what a text is for the decoder to say.
const (
	maxDocument = 8 << 10 // bytes, fifteen times what one needs
	maxDots     = 64
	maxBrackets = 64      // that open a table, an array or an inline table
	maxText     = 1 << 10 // bytes of owner, version and attestation each
	maxNotes    = 5       // of unknown keys
)

// Document says to whom a key belongs.
type Document struct {
	Fingerprint string `toml:"fingerprint"`
	Owner       string `toml:"owner"`
	Version     string `toml:"version,omitempty"`
	Attestation string `toml:"attestation,omitempty"` // of the registry the key came through; not checked here
	PublicKey   keyPEM `toml:"public_key"`

	notes []string // what is not used of the text it was read from
}

// documentFor is what a signature of the document about a key is for.
func documentFor(fingerprint string) sign.Name {
	return sign.Name{Kind: sign.KindTrustedKey, ID: fingerprint}
}

// keyPEM is the table that holds the key.
type keyPEM struct {
	PEM string `toml:"pem,multiline"`
}

// ParseDocument reads a trusted-key document and the key in it. It checks that
// the fingerprint is the key's, and leaves the signature to others. Keys that it
// does not know are not used, see [Document.Notes].
func ParseDocument(src []byte) (*Document, *sign.PublicKey, error) {
	if err := checkBounds(src); err != nil {
		return nil, nil, err
	}
	var doc Document
	meta, err := toml.Decode(string(src), &doc)
	if err != nil {
		return nil, nil, fmt.Errorf("not the TOML of a trusted key: %w", tomlError(err))
	}
	doc.notes = unknownKeys(meta.Undecoded())
	for _, text := range []string{doc.Owner, doc.Version, doc.Attestation} {
		if err := checkText(text); err != nil {
			return nil, nil, err
		}
	}
	if doc.Owner == "" {
		return nil, nil, errors.New("owner is missing")
	}
	key, err := sign.ParsePublic([]byte(doc.PublicKey.PEM))
	if err != nil {
		return nil, nil, fmt.Errorf("public_key.pem: %w", err)
	}
	if doc.Fingerprint != key.Fingerprint() {
		return nil, nil, fmt.Errorf("fingerprint %q is not that of the key, %s", doc.Fingerprint, key.Fingerprint())
	}
	return &doc, key, nil
}

// checkBounds refuses what would cost the decoder more than a document is worth.
func checkBounds(src []byte) error {
	dots, brackets := bytes.Count(src, []byte(".")), bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{"))
	switch {
	case len(src) > maxDocument:
		return fmt.Errorf("larger than %d bytes", maxDocument)
	case dots > maxDots:
		return fmt.Errorf("not a trusted key: it has %d dots, more than %d", dots, maxDots)
	case brackets > maxBrackets:
		return fmt.Errorf("not a trusted key: it opens %d brackets, more than %d", brackets, maxBrackets)
	}
	return nil
}

// unknownKeys names keys that are not used, with the known one that may be meant.
func unknownKeys(keys []toml.Key) []string {
	known := []string{"fingerprint", "owner", "version", "attestation", "public_key", "public_key.pem"}
	var notes []string
	for i, key := range keys {
		if i == maxNotes {
			return append(notes, fmt.Sprintf("%d more keys are not known and not used", len(keys)-i))
		}
		note := fmt.Sprintf("the key %q is not known and not used", item.Shown(key.String()))
		if nearest := item.Nearest(key.String(), known); nearest != "" {
			note += fmt.Sprintf("; %s is", nearest)
		}
		notes = append(notes, note)
	}
	return notes
}

// Notes says what of the text that the document was read from is not used, for a
// person.
func (d *Document) Notes() []string { return slices.Clone(d.notes) }

// tomlError adds the line, which the text of a syntax error lacks.
func tomlError(err error) error {
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return fmt.Errorf("line %d: %s", syntax.Position.Line, item.ShownIn(syntax.Message))
	}
	return err
}

// checkText refuses what could pass for something else where it is printed.
func checkText(text string) error {
	if len(text) > maxText {
		return fmt.Errorf("the text %.20q… is longer than %d bytes", text, maxText)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("the text %.40q holds characters that cannot be printed", text)
	}
	return nil
}

// encode writes the document as TOML, unsigned.
func (d *Document) encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := toml.NewEncoder(&text)
	encoder.Indent = ""
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("encode trusted key: %w", err)
	}
	return text.Bytes(), nil
}

// beginsPEM is how PEM text begins.
var beginsPEM = []byte("-----BEGIN ")

// ParseKey reads a key that somebody handed over: PEM text, also below the lines
// that "keys show" prints above it, or a document, whose signature is not asked for.
// Of PEM text, owner and the rest are empty.
func ParseKey(src []byte) (*Document, *sign.PublicKey, error) {
	if err := checkBounds(src); err != nil {
		return nil, nil, err
	}
	above, _, text := bytes.Cut(src, beginsPEM)
	if !text || bytes.ContainsRune(above, '=') { // in a document a key has a name
		return ParseDocument(src)
	}
	key, err := sign.ParsePublic(src[len(above):])
	if err != nil {
		return nil, nil, err
	}
	return newDocument(key), key, nil
}

func newDocument(key *sign.PublicKey) *Document {
	return &Document{Fingerprint: key.Fingerprint(), Version: "1.0.0", PublicKey: keyPEM{PEM: string(key.PEM())}}
}
