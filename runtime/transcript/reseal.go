package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Reseal writes the transcript of a thread that has ended with checkpoints of another
// signer, and leaves everything else as it is, to the byte. The caller vouches for what
// it says. It returns what fixes where the thread has ended; later additions
// follow it.
func Reseal(from records.Source, to io.Writer, by Signer) (thread.TranscriptHead, error) {
	f, err := from.Open()
	if err != nil {
		return thread.TranscriptHead{}, err
	}
	defer func() { _ = f.Close() }()
	r := resealer{to: to, signer: by, hash: sha256.New()}
	lines := newLineReader(wholeOf(f))
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return r.finish()
		}
		if err == nil {
			err = r.add(line)
		}
		if err != nil {
			return thread.TranscriptHead{}, err
		}
	}
}

// WithoutStreams writes a transcript without the texts of answers as they arrived, of
// which only the length is left, and everything else as it is. The whole answers have
// them, and what stands in two pieces is found in those alone.
func WithoutStreams(from records.Source, to io.Writer) error {
	f, err := from.Open()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := newLineReader(wholeOf(f))
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			line, err = withoutText(line)
		}
		if err == nil {
			_, err = to.Write(line)
		}
		if err != nil {
			return err
		}
	}
}

// withoutText is the line of an event, with its newline; of a piece of an answer only
// its length.
func withoutText(line []byte) ([]byte, error) {
	e, err := decodeLine(line)
	if err != nil || e.Type != thread.EventTokenDelta {
		return append(line[:len(line):len(line)], '\n'), err
	}
	d, err := Decode[TokenDelta](e)
	if err != nil {
		return nil, err
	}
	d.Bytes, d.Text = d.Bytes+len(d.Text), ""
	payload, err := encode(d)
	if err != nil {
		return nil, err
	}
	return encodeLine(stamp(e.Timestamp), e.ThreadID, e.Seq, e.Type, payload)
}

// resealer writes lines, and knows all bytes so far.
type resealer struct {
	to          io.Writer
	signer      Signer
	hash        hash.Hash
	offset      int64
	checkpoints int
	last        thread.Event
	ended       bool                  // the end is written
	head        thread.TranscriptHead // where it ends; empty until the checkpoint behind the end
}

func (r *resealer) add(line []byte) error {
	e, err := decodeLine(line)
	if err != nil {
		return err
	}
	if e.Type != thread.EventCheckpoint {
		r.last, r.ended = e, r.ended || terminal(e.Type)
		return r.write(append(line[:len(line):len(line)], '\n'))
	}
	c, err := Decode[Checkpoint](e)
	if err != nil {
		return err
	}
	return r.checkpoint(e, c)
}

// checkpoint writes one in the place of that of the other signer.
func (r *resealer) checkpoint(e thread.Event, c Checkpoint) error {
	c.ByteOffset, c.Hash = r.offset, hex.EncodeToString(r.hash.Sum(nil))
	c.Sig, c.FP = r.signer.Sign(c.Hash), r.signer.Fingerprint()
	payload, err := encode(c)
	if err != nil {
		return err
	}
	line, err := encodeLine(stamp(e.Timestamp), e.ThreadID, e.Seq, e.Type, payload)
	if err != nil {
		return err
	}
	if err := r.write(line); err != nil {
		return err
	}
	r.last = e
	if r.checkpoints++; r.ended && r.head.Bytes == 0 {
		r.head = thread.TranscriptHead{Checkpoints: r.checkpoints, Bytes: r.offset, Hash: hex.EncodeToString(r.hash.Sum(nil))}
	}
	return nil
}

func (r *resealer) write(line []byte) error {
	r.hash.Write(line) // never returns an error
	r.offset += int64(len(line))
	_, err := r.to.Write(line)
	return err
}

// finish refuses what does not end with a checkpoint behind the end of the thread.
func (r *resealer) finish() (thread.TranscriptHead, error) {
	if r.head.Bytes == 0 || r.last.Type != thread.EventCheckpoint {
		return thread.TranscriptHead{}, fmt.Errorf("the transcript of %s has no end, or none that is vouched for", r.last.ThreadID)
	}
	return r.head, nil
}
