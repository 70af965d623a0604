package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// page writes a text. On a terminal it goes through the person's pager when the screen does
// not hold it.
func page(ctx context.Context, sys System, text string) error {
	command := pagerOf(sys)
	if command == "" || strings.Count(text, "\n") < terminalHeight(sys.Stdout) {
		_, err := io.WriteString(sys.Stdout, text)
		return err
	}
	// The interrupt key is the pager's while it runs: it must neither end this program nor
	// cancel what the pager runs under.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	pager := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", command)
	pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), sys.Stdout, sys.Stderr
	pager.Env = sys.Environ
	if sys.Getenv("LESS") == "" {
		pager.Env = append(pager.Env[:len(pager.Env):len(pager.Env)], "LESS=FRX") // as git sets it
	}
	if err := pager.Run(); err != nil {
		_, err = io.WriteString(sys.Stdout, text) // a pager that is not there takes nothing away
		return err
	}
	return nil
}

// pagerOf is the command of the person's pager; empty for none.
func pagerOf(sys System) string {
	if !onTerminal(sys.Stdout) || sys.Getenv("TERM") == "dumb" {
		return ""
	}
	switch pager := strings.TrimSpace(sys.Getenv("PAGER")); pager {
	case "cat":
		return ""
	case "":
		return "less"
	default:
		return pager
	}
}

// terminalHeight is how many lines a terminal shows; a page has no end where it does
// not say.
func terminalHeight(stream any) int {
	const endless = 1 << 30
	f, ok := stream.(*os.File)
	if !ok {
		return endless
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 {
		return endless
	}
	return int(size.Row)
}
