package sign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// signatureMember holds the signature of a signed JSON document as
// "<fingerprint>:<signature>", the signature in base64url. It signs the SHA-256,
// in hex, of the canonical document (RFC 8785) without this member. It carries
// no time, so that the same content signed by the same key is the same bytes.
const signatureMember = "_signature"

// maxExact is the largest integer up to which canonical JSON, whose numbers are
// IEEE 754 doubles, keeps every integer apart: 2^53 − 1.
const maxExact = 1<<53 - 1

// EncodeSigned encodes v, which must marshal to a JSON object, as canonical JSON
// with a signature by k; with a nil k, without one. An object that brings a
// member "_signature", or an integer beyond ±(2^53 − 1), is refused.
func EncodeSigned(v any, k *Key) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode signed document: %w", err)
	}
	body, err := canonicalObject(plain)
	if err != nil {
		return nil, fmt.Errorf("encode signed document: %w", err)
	}
	found, err := findSignature(body)
	if err != nil {
		return nil, fmt.Errorf("encode signed document: %w", err)
	}
	if found.value != nil {
		return nil, fmt.Errorf("encode signed document: member %q is reserved", signatureMember)
	}
	if k == nil {
		return body, nil
	}
	return found.put(body, k.Fingerprint()+":"+k.Sign(hashOf(body))), nil
}

// OpenSigned decodes a document written by [EncodeSigned], which the holder of a public
// key must have signed, into v. The error is ErrUnsigned when nobody has signed it, and
// ErrBadSignature when the signature is another's or does not fit the content. Members
// that v does not have are ignored. On an error v is unchanged, unless the document does
// not fit its type.
func OpenSigned(data []byte, by *PublicKey, v any) error {
	body, err := canonicalObject(data)
	if err != nil {
		return fmt.Errorf("decode signed document: %w", err)
	}
	found, err := findSignature(body)
	if err != nil {
		return fmt.Errorf("decode signed document: %w", err)
	}
	if found.value == nil {
		return fmt.Errorf("decode signed document: %w", ErrUnsigned)
	}
	body = found.cut(body)
	if err := by.verifyMember(found.value, body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decode signed document: %w", err)
	}
	return nil
}

// SignerOf is the fingerprint of the key that has signed a document, as that says
// itself; empty when it carries no signature, or is none.
func SignerOf(data []byte) string {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(data, &members) != nil || json.Unmarshal(members[signatureMember], &value) != nil {
		return ""
	}
	fingerprint, _, _ := strings.Cut(value, ":")
	return fingerprint
}

// verifyMember checks the text of a signature member against the canonical
// document without it.
func (p *PublicKey) verifyMember(text json.RawMessage, body []byte) error {
	var value string
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("%w: member %q is not a string", ErrBadSignature, signatureMember)
	}
	fingerprint, sig, ok := strings.Cut(value, ":")
	if !ok {
		return fmt.Errorf("%w: member %q is not <fingerprint>:<signature>", ErrBadSignature, signatureMember)
	}
	if fingerprint != p.Fingerprint() {
		return fmt.Errorf("%w: made by another key than %s", ErrBadSignature, p.Fingerprint())
	}
	return p.Verify(hashOf(body), sig)
}

// canonicalObject is a JSON object in canonical form, which refuses duplicate members.
func canonicalObject(data []byte) ([]byte, error) {
	if err := checkNumbers(data); err != nil {
		return nil, err
	}
	body, err := jcs.Transform(data)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(body, []byte("{")) {
		return nil, errors.New("not a JSON object")
	}
	return body, nil
}

// signaturePlace is where the signature is in a canonical object, or belongs. Without
// that member, or with it, the object is canonical as well, since nothing stands
// between members but a comma and they are sorted.
type signaturePlace struct {
	value    json.RawMessage // nil: there is none
	from, to int
}

func findSignature(body []byte) (signaturePlace, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if _, err := decoder.Token(); err != nil { // {
		return signaturePlace{}, err
	}
	for decoder.More() {
		from := int(decoder.InputOffset())
		name, err := decoder.Token()
		if err != nil {
			return signaturePlace{}, err
		}
		// Beside a name of ASCII alone the order of UTF-16 is that of bytes.
		if name.(string) > signatureMember {
			return signaturePlace{nil, from, from}, nil
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return signaturePlace{}, err
		}
		if name == signatureMember {
			return signaturePlace{value, from, int(decoder.InputOffset())}, nil
		}
	}
	end := len(body) - len("}")
	return signaturePlace{nil, end, end}, nil
}

// around is what stands before and behind the place, without commas next to it.
func (s signaturePlace) around(body []byte) (before, behind []byte) {
	return bytes.TrimSuffix(body[:s.from], []byte(",")), bytes.TrimPrefix(body[s.to:], []byte(","))
}

// cut is the object without the signature.
func (s signaturePlace) cut(body []byte) []byte {
	before, behind := s.around(body)
	if string(before) == "{" || string(behind) == "}" {
		return slices.Concat(before, behind)
	}
	return slices.Concat(before, []byte(","), behind)
}

// put is the object with a signature, whose text needs no escapes.
func (s signaturePlace) put(body []byte, text string) []byte {
	before, behind := s.around(body)
	if string(before) != "{" {
		before = slices.Concat(before, []byte(","))
	}
	if string(behind) != "}" {
		behind = slices.Concat([]byte(","), behind)
	}
	return slices.Concat(before, []byte(`"`+signatureMember+`":"`+text+`"`), behind)
}

// checkNumbers refuses integers that canonical JSON would round: two documents
// that differ in such a number would share one signature.
func checkNumbers(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		number, ok := token.(json.Number)
		if !ok || strings.ContainsAny(number.String(), ".eE") {
			continue
		}
		n, err := strconv.ParseInt(number.String(), 10, 64)
		if err != nil || n > maxExact || n < -maxExact {
			return fmt.Errorf("the integer %.40s is beyond ±(2^53 − 1)", number)
		}
	}
}
