package thread

import "encoding/json"

// MetadataMirrored is the key of metadata that says as which thread, by its UUID, the
// mirror has a thread that was forked from there.
const MetadataMirrored = "mirrored_as"

// MirroredAs is what the metadata of a thread say about that; false: nothing.
func MirroredAs(metadata json.RawMessage) (id string, is bool) {
	var said struct {
		As string `json:"mirrored_as"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &said) != nil {
		return "", false
	}
	return said.As, said.As != ""
}

// WithMirror is metadata that say so.
func WithMirror(metadata json.RawMessage, id string) (json.RawMessage, error) {
	object, err := metadataObject(metadata)
	if err != nil {
		return nil, err
	}
	object[MetadataMirrored] = id
	return encodeMetadata(object)
}

// IsImported reports whether metadata say that a thread was taken in from a recording.
func IsImported(metadata json.RawMessage) bool {
	var said struct {
		Imported json.RawMessage `json:"imported"`
	}
	return len(metadata) > 0 && json.Unmarshal(metadata, &said) == nil && len(said.Imported) > 0
}
