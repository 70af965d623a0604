package cli

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks the person a question whose answer is no unless it is yes.
func confirm(sys System, question, otherwise string) (bool, error) {
	if !onTerminal(sys.Stdin) {
		return false, &usageError{message: "there is nobody to ask: standard input is no terminal", try: otherwise}
	}
	if _, err := fmt.Fprintf(sys.Stderr, "%s [y/N] ", question); err != nil {
		return false, err
	}
	lines := bufio.NewScanner(sys.Stdin)
	if !lines.Scan() {
		return false, lines.Err()
	}
	answer := strings.ToLower(strings.TrimSpace(lines.Text()))
	return answer == "y" || answer == "yes", nil
}
