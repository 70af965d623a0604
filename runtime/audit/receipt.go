package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// receiptType is signed with every receipt, so that no other signed document can
// be taken for one.
const (
	receiptType    = "rye-mcp/thread-receipt"
	receiptVersion = 1
)

// Receipt says what a thread was, what it could do and what it cost, for whoever
// has neither the project nor the registry. Together with a copy of the
// transcript, whose end it fixes, it proves every event of it.
type Receipt struct {
	Type          string                 `json:"type"`
	Version       int                    `json:"version"`
	IssuedAt      time.Time              `json:"issued_at"`
	ThreadID      thread.ID              `json:"thread_id"`
	Kind          thread.Kind            `json:"kind"`
	ParentID      thread.ID              `json:"parent_id,omitempty"`
	ChainRootID   thread.ID              `json:"chain_root_id,omitempty"`
	Directive     string                 `json:"directive"`
	DirectiveHash string                 `json:"directive_hash"` // SHA-256 of the file, hex
	Space         string                 `json:"space"`
	Snapshot      string                 `json:"snapshot,omitempty"` // of the items it worked by: SHA-256 of the manifest, hex
	Model         string                 `json:"model"`
	Capabilities  []string               `json:"capabilities"`
	Ceiling       [][]string             `json:"capability_ceiling,omitempty"` // nearest ancestor first
	Limits        thread.Limits          `json:"limits"`
	Status        thread.State           `json:"status"`
	ErrorCode     string                 `json:"error_code,omitempty"`
	CreatedAt     time.Time              `json:"created_at"`
	CompletedAt   time.Time              `json:"completed_at"`
	Cost          thread.Cost            `json:"cost"`
	TreeSpend     thread.Micros          `json:"tree_spend"` // dollars, of the thread and everything below it
	Below         []ReceiptThread        `json:"below,omitempty"`
	Transcript    *thread.TranscriptHead `json:"transcript"`
	// TranscriptKeys are those that sign what threads leave, one of which has signed
	// the checkpoints; of a receipt of before they were keys of their own, none.
	TranscriptKeys []Signer `json:"transcript_keys,omitempty"`
	Signer         Signer   `json:"signer"`
}

// ReceiptThread is a thread below that of the receipt.
type ReceiptThread struct {
	ThreadID  thread.ID    `json:"thread_id"`
	ParentID  thread.ID    `json:"parent_id"`
	Directive string       `json:"directive"`
	Status    thread.State `json:"status"`
	Cost      thread.Cost  `json:"cost"`
}

// Signer is the key that signed a receipt.
type Signer struct {
	Fingerprint string `json:"fingerprint"`
	PublicKey   string `json:"public_key"` // PEM
}

// Seal completes a receipt with the key and signs it.
func (r Receipt) Seal(key *sign.Key) ([]byte, error) {
	r.Type, r.Version = receiptType, receiptVersion
	r.Signer = signerOf(key.Public())
	return sign.EncodeSigned(r, key)
}

// SignTranscript names the keys by which the transcript is to be checked.
func (r *Receipt) SignTranscript(keys []*sign.PublicKey) {
	for _, key := range keys {
		r.TranscriptKeys = append(r.TranscriptKeys, signerOf(key))
	}
}

func signerOf(key *sign.PublicKey) Signer {
	return Signer{Fingerprint: key.Fingerprint(), PublicKey: string(key.PEM())}
}

// ErrNoReceipt says that a document is no receipt of a thread.
var ErrNoReceipt = errors.New("not a receipt of a thread")

// OpenReceipt reads a receipt and checks that the key it names has signed it.
// Whether that key is to be believed is the caller's to decide.
func OpenReceipt(data []byte) (*Receipt, *sign.PublicKey, error) {
	var named struct {
		Type    string
		Version int
		Signer  Signer
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoReceipt, err)
	}
	if named.Type != receiptType {
		return nil, nil, fmt.Errorf("%w: its type is %.40q", ErrNoReceipt, named.Type)
	}
	if named.Version != receiptVersion {
		return nil, nil, fmt.Errorf("version %d of the receipt is not known; this rye-mcp knows %d", named.Version, receiptVersion)
	}
	key, err := sign.ParsePublic([]byte(named.Signer.PublicKey))
	if err != nil {
		return nil, nil, fmt.Errorf("public key of the receipt: %w", err)
	}
	var r Receipt
	if err := sign.OpenSigned(data, key, &r); err != nil {
		return nil, nil, err
	}
	// The decoder above takes a name in any case, the canonical form keeps each.
	if r.Type != receiptType || r.Signer.PublicKey != named.Signer.PublicKey {
		return nil, nil, fmt.Errorf("%w: it has a member twice", ErrNoReceipt)
	}
	return &r, key, nil
}

// CheckTranscript checks that a transcript is, to its last byte, the one that the
// receipt fixes. Damage is a *[transcript.TamperError].
func (r *Receipt) CheckTranscript(said records.Source, key *sign.PublicKey) (transcript.Report, error) {
	if r.Transcript == nil {
		return transcript.Report{}, fmt.Errorf("%w: the receipt is of a thread without a transcript", fs.ErrNotExist)
	}
	keys, err := r.transcriptKeys(key)
	if err != nil {
		return transcript.Report{}, err
	}
	report, err := transcript.Verify(said, keys, r.Transcript)
	if err != nil {
		return report, err
	}
	if report.ThreadID != r.ThreadID {
		return report, &transcript.TamperError{
			Turn: 1, Line: 1, Damage: transcript.Spliced, Detail: fmt.Sprintf("it is that of thread %.80q", report.ThreadID),
		}
	}
	return report, nil
}

// anyOf verifies a checkpoint with the one of several keys that it names.
type anyOf []*sign.PublicKey

// VerifyFrom implements [transcript.Verifier].
func (keys anyOf) VerifyFrom(fingerprint, hexHash, sig string) error {
	for _, key := range keys {
		if key.Fingerprint() == fingerprint {
			return key.Verify(hexHash, sig)
		}
	}
	return sign.ErrOtherKey
}

// transcriptKeys are those that the receipt vouches for, else its own.
func (r *Receipt) transcriptKeys(own *sign.PublicKey) (anyOf, error) {
	if len(r.TranscriptKeys) == 0 {
		return anyOf{own}, nil
	}
	var keys anyOf
	for _, s := range r.TranscriptKeys {
		key, err := sign.ParsePublic([]byte(s.PublicKey))
		if err != nil {
			return nil, fmt.Errorf("transcript key of the receipt: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
