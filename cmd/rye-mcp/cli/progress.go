package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

const (
	// progressAfter is how long a command may take without saying that it works.
	progressAfter = time.Second
	// progressEvery is how often the line about it is drawn.
	progressEvery = 200 * time.Millisecond
)

// progress is a line on standard error about what takes a while, drawn over
// itself and gone in the end. Only a terminal shows it.
type progress struct {
	out  io.Writer
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	what  string
	drawn bool // the line is on the screen
}

// startProgress tells what is done once that has taken a second.
func startProgress(sys System, what string) *progress {
	p := &progress{out: sys.Stderr, stop: make(chan struct{}), done: make(chan struct{}), what: what}
	if !redraws(sys, sys.Stderr) {
		close(p.done)
		return p
	}
	go p.run(time.After(progressAfter), terminalWidth(sys.Stderr))
	return p
}

// run draws from when first comes until the end.
func (p *progress) run(first <-chan time.Time, width int) {
	defer close(p.done)
	select {
	case <-first:
	case <-p.stop:
		return
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	p.draw(tick.C, width)
}

// say changes what the line tells.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = plain.Line(fmt.Sprintf(format, args...))
}

// tell writes lines that stay; the one that is drawn goes on below them.
func (p *progress) tell(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		text = eraseLine + text
	}
	_, _ = io.WriteString(p.out, text)
}

// end takes the line away.
func (p *progress) end() {
	close(p.stop)
	<-p.done
}

const eraseLine = "\r\x1b[2K"

// draw shows the line with every tick until the end.
func (p *progress) draw(ticks <-chan time.Time, width int) {
	wheel := []rune(`⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏`)
	for turn := 0; ; turn++ {
		p.mu.Lock()
		line := string(wheel[turn%len(wheel)]) + " " + p.what
		if width > 0 {
			line = plain.Shorten(line, width-1) // a full line would wrap, and not be erased
		}
		_, _ = io.WriteString(p.out, eraseLine+line)
		p.drawn = true
		p.mu.Unlock()
		select {
		case <-ticks:
		case <-p.stop:
			_, _ = io.WriteString(p.out, eraseLine)
			return
		}
	}
}
