package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe is read through another opening, whose reads do not block; the first one stays
// as it was for those who share it. The end of the stream arrives, and what is no pipe
// is read as it is.
func TestAwaited(t *testing.T) {
	t.Parallel()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	theirs, client := os.NewFile(uintptr(fds[0]), "stdin"), os.NewFile(uintptr(fds[1]), "client")
	in, end := awaited(theirs)
	defer end()
	if in == io.Reader(theirs) {
		t.Fatal("the pipe is read as it is")
	}
	for name, want := range map[*os.File]bool{theirs: false, in.(*os.File): true} { //nolint:forcetypeassert // said by awaited
		raw, err := name.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
			if err != nil || flags&unix.O_NONBLOCK != 0 != want {
				t.Errorf("%s: flags %#x, %v", name.Name(), flags, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		_, _ = client.WriteString("a line\n")
		_ = client.Close()
	}()
	if got, err := io.ReadAll(in); err != nil || string(got) != "a line\n" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := theirs.Close(); err != nil {
		t.Error(err)
	}
	text := strings.NewReader("text")
	if same, _ := awaited(text); same != io.Reader(text) {
		t.Error("a reader of text is another one")
	}
}
