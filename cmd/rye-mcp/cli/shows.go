package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

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
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
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
