package wire

import (
	"fmt"
	"io"
)

// maxAnswer is more than any model can say in one answer (128 k tokens of
// four bytes, each wrapped in an event of a few hundred); a longer body is no
// answer.
const maxAnswer = 256 << 20

// body watches the bytes of an answer arrive.
type body struct {
	call  *Call
	rc    io.ReadCloser
	read  int64 // bytes so far
	shape shape // of an answer
	good  bool  // these are bytes of an answer, not of a refusal
}

func (b *body) Read(p []byte) (int, error) {
	b.call.clock.start()
	n, err := b.rc.Read(p)
	b.call.clock.stop()
	b.read += int64(n)
	if n > 0 {
		b.call.clock.alive()
	}
	if b.good && n > 0 {
		b.call.begun = true
	}
	if b.good {
		if bad := b.shape.read(p[:n]); bad != nil {
			return 0, bad
		}
	}
	if b.read > maxAnswer {
		return n, fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
	}
	return n, err
}

func (b *body) Close() error { return b.rc.Close() }
