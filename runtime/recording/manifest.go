package recording

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Extension is that of recordings in a folder of tests.
const Extension = ".ryetest"

// The type and version that a manifest says, so that no other signed document can be
// taken for one.
const (
	manifestType = "rye-mcp/recording"
	Version      = 1
)

// Manifest says what is in a recording.
type Manifest struct {
	Type    string  `json:"type"`
	Version int     `json:"version"`
	Threads []Entry `json:"threads"` // the one that was asked for first
	Items   []Item  `json:"items"`
	Files   []File  `json:"files"` // sorted by name, all but the manifest
	Signer  Signer  `json:"signer"`
}

// Entry is a thread of a recording.
type Entry struct {
	ThreadID  thread.ID    `json:"thread_id"`
	Directive string       `json:"directive"`
	Status    thread.State `json:"status"`
	// Ended is false for a thread that ran when it was recorded: it stands as it was at
	// its last checkpoint.
	Ended bool   `json:"ended"`
	Dir   string `json:"dir"` // threads/N
	// Transcript is what the original was, before anything was taken out of it.
	Transcript thread.TranscriptHead `json:"original_transcript"`
}

// Item is a directive or knowledge that a thread was made of.
type Item struct {
	Kind item.Kind `json:"kind"`
	ID   string    `json:"id"`
	Hash string    `json:"hash"` // SHA-256 of the file that was used, hex
	// File has it; empty: it was changed before the thread was recorded.
	File string `json:"file,omitempty"`
}

// File is a member of the archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`             // hex
	Taken  int    `json:"redacted,omitempty"` // how many secrets were taken out
}

// Signer is the key that signed a recording.
type Signer struct {
	Fingerprint string `json:"fingerprint"`
	PublicKey   string `json:"public_key"` // PEM
}

// ErrNoRecording says that a file is no recording.
var ErrNoRecording = errors.New("not a recording of threads")

// seal signs a manifest.
func (m Manifest) seal(key *sign.Key) ([]byte, error) {
	m.Type, m.Version = manifestType, Version
	m.Signer = Signer{Fingerprint: key.Fingerprint(), PublicKey: string(key.Public().PEM())}
	return sign.EncodeSigned(m, key)
}

// openManifest reads a manifest and checks that the key it names has signed it. Whether
// that key is to be believed is the caller's to decide.
func openManifest(data []byte) (Manifest, *sign.PublicKey, error) {
	var named struct {
		Type    string `json:"type"`
		Version int    `json:"version"`
		Signer  Signer `json:"signer"`
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return Manifest{}, nil, fmt.Errorf("%w: its manifest is no JSON: %w", ErrNoRecording, err)
	}
	if named.Type != manifestType {
		return Manifest{}, nil, fmt.Errorf("%w: its manifest is of the type %.40q", ErrNoRecording, named.Type)
	}
	if named.Version != Version {
		return Manifest{}, nil, fmt.Errorf("version %d of the recording is not known; this rye-mcp knows %d", named.Version, Version)
	}
	key, err := sign.ParsePublic([]byte(named.Signer.PublicKey))
	if err != nil {
		return Manifest{}, nil, fmt.Errorf("public key of the recording: %w", err)
	}
	var m Manifest
	if err := sign.OpenSigned(data, key, &m); err != nil {
		return Manifest{}, nil, fmt.Errorf("manifest of the recording: %w", err)
	}
	// The decoder above takes a name in any case, the canonical form keeps each.
	if m.Type != manifestType || m.Signer.PublicKey != named.Signer.PublicKey {
		return Manifest{}, nil, fmt.Errorf("%w: its manifest has a member twice", ErrNoRecording)
	}
	return m, key, nil
}
