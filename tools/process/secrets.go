//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// SecretsFD is the file descriptor from which a detached process reads its
// secrets.
const SecretsFD = 4

// errNoSecrets says that nobody hands over secrets, or not to the end.
var errNoSecrets = errors.New("nobody hands over secrets")

// secretsEnd follows the last secret. Without it the starter died before it had
// said everything.
const secretsEnd = "\x00"

// secretsPipe returns the end of a pipe for the new process, and what writes the
// secrets into it once that process is there to read: a pipe holds little. A
// process that dies before it has read them is found dead like any other.
func secretsPipe(secrets []string) (read *os.File, send func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("hand over secrets: %w", err)
	}
	return read, func() {
		_ = read.Close() // or writing would never fail
		for _, entry := range secrets {
			_, _ = io.WriteString(write, entry+"\x00")
		}
		_, _ = io.WriteString(write, secretsEnd)
		_ = write.Close()
	}, nil
}

// InheritSecrets reads, in a process that [Detach] started with Spec.Secrets,
// what was handed over as [SecretsFD], and closes it. Call it once, before
// anything is started. A descriptor that is something else is not touched.
func InheritSecrets() ([]string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(SecretsFD, &stat); err != nil {
		return nil, fmt.Errorf("%w: file descriptor %d: %w", errNoSecrets, SecretsFD, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil, fmt.Errorf("%w: file descriptor %d is no pipe", errNoSecrets, SecretsFD)
	}
	pipe := os.NewFile(SecretsFD, "secrets")
	defer func() { _ = pipe.Close() }() // only read
	return readSecrets(pipe)
}

func readSecrets(r io.Reader) ([]string, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read what is handed over: %w", err)
	}
	entries, complete := strings.CutSuffix(string(content), secretsEnd)
	if !complete || entries != "" && !strings.HasSuffix(entries, "\x00") {
		return nil, fmt.Errorf("%w: the starter died before it was done", errNoSecrets)
	}
	return slices.DeleteFunc(strings.Split(entries, "\x00"), func(entry string) bool { return entry == "" }), nil
}
