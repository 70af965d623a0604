package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Verified is a reader of a content that ends in an [*AlteredError] where that does not
// have the hash and so many bytes; size is -1 where it is not known.
func Verified(content io.Reader, want Hash, size int64) io.Reader {
	return &verified{from: content, want: want, size: size, sum: sha256.New()}
}

type verified struct {
	from io.Reader
	want Hash
	size int64
	read int64
	sum  hash.Hash
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.read += int64(n)
	_, _ = v.sum.Write(p[:n]) // a hash takes everything
	switch {
	case v.size >= 0 && v.read > v.size:
		return 0, &AlteredError{v.want, fmt.Sprintf("it has more than %d bytes", v.size)}
	case !errors.Is(err, io.EOF):
		return n, err
	case v.size >= 0 && v.read < v.size:
		return n, &AlteredError{v.want, fmt.Sprintf("it has %d bytes and not %d", v.read, v.size)}
	}
	if is := Hash(hex.EncodeToString(v.sum.Sum(nil))); is != v.want {
		return n, &AlteredError{v.want, "its hash is " + string(is)}
	}
	return n, err
}

// ReadAll reads a whole content of at most so many bytes.
func ReadAll(ctx context.Context, from Blobs, hash Hash, most int64) (content []byte, err error) {
	r, err := from.Get(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	content, err = io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(content)) > most {
		err = &AlteredError{hash, fmt.Sprintf("it has more than %d bytes", most)}
	}
	return content, err
}

// readBounded reads at most so many bytes; more are an error.
func readBounded(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return content, err
}
