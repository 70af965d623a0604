package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// runE is what cobra runs a command with.
type runE = func(*cobra.Command, []string) error

// shows makes a command that only shows something end quietly when whoever
// reads its output has seen enough.
func shows(run runE) runE {
	return func(cmd *cobra.Command, args []string) error {
		defer surviveSIGPIPE()()
		if err := run(cmd, args); !errors.Is(err, syscall.EPIPE) {
			return err
		}
		return nil
	}
}

// surviveSIGPIPE makes a write to a closed pipe fail instead of ending the
// program, which would leave its work half done.
func surviveSIGPIPE() (restore func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGPIPE)
	return func() { signal.Stop(caught) }
}

// jsonFlag gives a command the flag --json. The JSON is stable: keys are added,
// never renamed.
func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "write JSON")
}

// writeJSON writes v indented.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeUnseen(b.Bytes()))
	return err
}

// escapeUnseen escapes in JSON what a terminal obeys and the library leaves as it is: control characters beyond
// ASCII's first, and those that turn the direction of text. They stand in strings alone.
func escapeUnseen(document []byte) []byte {
	obeyed := func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }
	if bytes.IndexFunc(document, obeyed) < 0 {
		return document
	}
	escaped := make([]byte, 0, len(document)+16)
	for _, r := range string(document) {
		if !obeyed(r) {
			escaped = utf8.AppendRune(escaped, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return escaped
}

// conclude shows what a command has found, as JSON or as show writes it for
// people, and ends the command with exit code 1 when that is no success.
func conclude(sys System, asJSON bool, found any, success bool, show func() error) error {
	if asJSON {
		show = func() error { return writeJSON(sys.Stdout, found) }
	}
	if err := show(); err != nil {
		return err
	}
	if !success {
		return exitError{code: exitFailure}
	}
	return nil
}
