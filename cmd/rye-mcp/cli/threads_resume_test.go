package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// A message is read to its end; a person who writes one can give up.
func TestReadMessage(t *testing.T) {
	t.Parallel()
	got, err := readMessage(t.Context(), strings.NewReader("one\ntwo\n"))
	if err != nil || got != "one\ntwo\n" {
		t.Errorf("read %q, %v", got, err)
	}
	long, err := readMessage(t.Context(), strings.NewReader(strings.Repeat("x", maxMessage+10)))
	if err != nil || len(long) != maxMessage+1 {
		t.Errorf("of a long message %d bytes are read, %v", len(long), err)
	}
	typing, person := io.Pipe()
	defer func() { _ = person.Close() }()
	enough := errors.New("enough")
	ctx, giveUp := context.WithCancelCause(t.Context())
	giveUp(enough)
	if _, err := readMessage(ctx, typing); !errors.Is(err, enough) {
		t.Errorf("given up: %v", err)
	}
}
