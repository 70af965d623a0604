package thread

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a thread is labelled with.
const (
	MaxNameRunes     = 200
	MaxMetadataBytes = 16 << 10
	MaxMetadataDepth = 8   // the object itself is one
	MaxKeyRunes      = 128 // of a key of metadata
)

// ErrBadLabel is what a name or metadata is refused with.
var ErrBadLabel = errors.New("not a valid label")

// LabelError says what is wrong with a name or metadata. It is an [ErrBadLabel].
type LabelError struct{ Text string }

func (e *LabelError) Error() string { return e.Text }

// Is makes it a kind of [ErrBadLabel].
func (e *LabelError) Is(target error) bool { return target == ErrBadLabel }

func badLabel(format string, args ...any) error {
	return &LabelError{Text: fmt.Sprintf(format, args...)}
}

// Reserved reports whether a key of metadata is kept by rye-mcp: nobody sets it by hand,
// and it says something of one thread alone, and not of those that continue it.
func Reserved(key string) bool {
	switch key {
	case MetadataForkedFrom, MetadataForkedAt, MetadataImported, MetadataRecordsGone, MetadataMirrored, MetadataCancelledBy:
		return true
	}
	return false
}

// MetadataRecordsGone is the key of metadata that says since when the records of a thread
// are known to be gone, as a time of RFC 3339.
const MetadataRecordsGone = "records_gone"

// MetadataCancelledBy is the key of metadata that says who has asked a thread to stop.
const MetadataCancelledBy = "cancelled_by"

// CancelledBy says who has asked the thread to stop, as its row has it; empty where it does
// not.
func (r Record) CancelledBy() string {
	var noted struct {
		By string `json:"cancelled_by"`
	}
	if r.CancelRequestedAt.IsZero() || json.Unmarshal(r.Metadata, &noted) != nil {
		return ""
	}
	return noted.By
}

// CancelCause is the cause of a stop that is on record.
func (r Record) CancelCause() error {
	if by := r.CancelledBy(); by != "" {
		return fmt.Errorf("%w by %s", ErrCancelled, by)
	}
	return ErrCancelled
}

// ParseName checks what somebody calls a thread, without the spaces around it.
func ParseName(text string) (string, error) {
	name := strings.TrimSpace(text)
	switch {
	case name == "":
		return "", badLabel("the name is empty")
	case !utf8.ValidString(name):
		return "", badLabel("the name is not UTF-8")
	case utf8.RuneCountInString(name) > MaxNameRunes:
		return "", badLabel("the name has %d characters; at most %d are valid", utf8.RuneCountInString(name), MaxNameRunes)
	}
	if at := strings.IndexFunc(name, misleads); at >= 0 {
		r, _ := utf8.DecodeRuneInString(name[at:])
		return "", badLabel("the name has the control character %U", r)
	}
	return name, nil
}

// misleads reports whether a character changes where or in which direction others are
// shown: those that control a terminal, end a line, or turn the direction of writing.
func misleads(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Bidi_Control, r)
}

// PlainName is a text as a name that was not chosen by anybody: without what
// [ParseName] refuses, and cut to its bounds.
func PlainName(text string) string {
	text = PlainText(text)
	if runes := []rune(text); len(runes) > MaxNameRunes {
		text = string(runes[:MaxNameRunes])
	}
	return strings.TrimSpace(text)
}

// PlainText has spaces in place of the characters that no name has.
func PlainText(text string) string {
	return strings.Map(func(r rune) rune {
		if misleads(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// PatchMetadata applies a JSON merge patch (RFC 7396) to metadata, which may be empty:
// members of the patch replace those of the same name, and null removes one. The
// result is a JSON object within the bounds above.
func PatchMetadata(now, patch json.RawMessage) (json.RawMessage, error) {
	was, err := metadataObject(now)
	if err != nil {
		return nil, err
	}
	with, err := metadataObject(patch)
	if err != nil {
		return nil, err
	}
	for key := range with {
		if Reserved(key) {
			return nil, badLabel("%s is kept by rye-mcp and cannot be set", key)
		}
	}
	return encodeMetadata(mergePatch(was, with))
}

// ParseMetadata checks metadata that a thread begins with, and writes it as it is kept.
func ParseMetadata(raw json.RawMessage) (json.RawMessage, error) {
	object, err := metadataObject(raw)
	if err != nil {
		return nil, err
	}
	return encodeMetadata(object)
}

// InheritedMetadata is what a thread that continues another has of its metadata: all
// but what is reserved, and nothing of what no version would have kept.
func InheritedMetadata(raw json.RawMessage) json.RawMessage {
	object, err := metadataObject(raw)
	if err != nil {
		return nil
	}
	for key := range object {
		if Reserved(key) {
			delete(object, key)
		}
	}
	kept, _ := encodeMetadata(object) // nil with an error
	return kept
}

// metadataObject decodes an object, or nothing. Numbers stay as they are written.
func metadataObject(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	if len(raw) > 2*MaxMetadataBytes { // with room for what is removed, and for spaces
		return nil, tooLong(len(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil || object == nil {
		return nil, badLabel("metadata is not a JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, badLabel("something follows the JSON object of metadata")
	}
	return object, checkMetadata(object, 1)
}

// checkMetadata bounds the depth and the keys of an object and of all in it.
func checkMetadata(value any, depth int) error {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	if !isObject && !isList {
		return nil
	}
	if depth > MaxMetadataDepth {
		return badLabel("metadata is nested more than %d deep", MaxMetadataDepth)
	}
	for key, member := range object {
		if err := CheckMetadataKey(key); err != nil {
			return err
		}
		if err := checkMetadata(member, depth+1); err != nil {
			return err
		}
	}
	for _, member := range list {
		if err := checkMetadata(member, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// CheckMetadataKey refuses a key that could not be asked for.
func CheckMetadataKey(key string) error {
	switch {
	case key == "", utf8.RuneCountInString(key) > MaxKeyRunes:
		return badLabel("a key of metadata has 1 to %d characters, not %d", MaxKeyRunes, utf8.RuneCountInString(key))
	case !utf8.ValidString(key), strings.ContainsAny(key, `"\`), strings.ContainsFunc(key, misleads):
		return badLabel("the key %q of metadata has a quotation mark, a backslash or a control character", key)
	}
	return nil
}

// mergePatch is RFC 7396 for an object.
func mergePatch(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			below, isObject := target[key].(map[string]any)
			if !isObject {
				below = map[string]any{}
			}
			target[key] = mergePatch(below, value)
		default:
			target[key] = value
		}
	}
	return target
}

// encodeMetadata writes an object as it is kept: compact, keys in order, each
// character as it is.
func encodeMetadata(object map[string]any) (json.RawMessage, error) {
	if err := checkMetadata(object, 1); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return nil, badLabel("metadata cannot be kept as JSON: %v", err)
	}
	if b.Len()-1 > MaxMetadataBytes {
		return nil, tooLong(b.Len() - 1)
	}
	return slices.Clip(b.Bytes()[:b.Len()-1]), nil
}

func tooLong(bytes int) error {
	return badLabel("the metadata would be %d bytes; at most %d are valid", bytes, MaxMetadataBytes)
}
