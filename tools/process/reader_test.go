//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAwaitReaderGone(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close() //nolint:errcheck // nothing was written
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- AwaitReaderGone(ctx, write) }()
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	go func() { over <- AwaitReaderGone(t.Context(), write) }()
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Errorf("the reader is gone: %v", err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if err := AwaitReaderGone(t.Context(), file); !errors.Is(err, errNoPipe) {
		t.Errorf("a file: %v", err)
	}
}
