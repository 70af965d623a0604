package trust

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// maxDocument bounds a trusted-key document: 16 KiB, thirty times what one needs.
const maxDocument = 16 << 10

// maxText bounds owner, version and attestation, in bytes.
const maxText = 1 << 10

// Document says to whom a key belongs.
type Document struct {
	Fingerprint string `toml:"fingerprint"`
	Owner       string `toml:"owner"`
	Version     string `toml:"version,omitempty"`
	Attestation string `toml:"attestation,omitempty"` // of the registry the key came through; not checked here
	PublicKey   keyPEM `toml:"public_key"`
}

// keyPEM is the table that holds the key.
type keyPEM struct {
	PEM string `toml:"pem,multiline"`
}

// ParseDocument reads a trusted-key document and the key in it. It checks that
// the fingerprint is the key's, and leaves the signature to others.
func ParseDocument(src []byte) (*Document, *sign.PublicKey, error) {
	if len(src) > maxDocument {
		return nil, nil, fmt.Errorf("larger than %d bytes", maxDocument)
	}
	var doc Document
	meta, err := toml.Decode(string(src), &doc)
	if err != nil {
		return nil, nil, fmt.Errorf("not the TOML of a trusted key: %w", tomlError(err))
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, nil, fmt.Errorf("unknown key %s; known are fingerprint, owner, version, attestation and public_key.pem", unknown[0])
	}
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

// tomlError adds the line, which the text of a syntax error lacks.
func tomlError(err error) error {
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return fmt.Errorf("line %d: %s", syntax.Position.Line, syntax.Message)
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

// ParseKey reads a key that somebody handed over: PEM text, or a document, whose
// signature is not asked for. Of PEM text, owner and the rest are empty.
func ParseKey(src []byte) (*Document, *sign.PublicKey, error) {
	if len(src) > maxDocument {
		return nil, nil, fmt.Errorf("larger than %d bytes", maxDocument)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(src), []byte("-----BEGIN ")) {
		return ParseDocument(src)
	}
	key, err := sign.ParsePublic(src)
	if err != nil {
		return nil, nil, err
	}
	return newDocument(key), key, nil
}

func newDocument(key *sign.PublicKey) *Document {
	return &Document{Fingerprint: key.Fingerprint(), Version: "1.0.0", PublicKey: keyPEM{PEM: string(key.PEM())}}
}
