//go:build linux || darwin

package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func openSh(t *testing.T, script string) *Peer {
	t.Helper()
	c := sh(script)
	c.Grace = 50 * time.Millisecond
	p, err := Open(c)
	must(t, err)
	t.Cleanup(p.Kill)
	return p
}

func TestPeerTalks(t *testing.T) {
	t.Parallel()
	p := openSh(t, `echo ready >&2; while read line; do echo "got $line"; done; exit 3`)
	out := bufio.NewReader(p.Stdout)
	for i := range 3 {
		_, err := fmt.Fprintf(p.Stdin, "%d\n", i)
		must(t, err)
		if line, err := out.ReadString('\n'); err != nil || line != fmt.Sprintf("got %d\n", i) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	p.Close()
	if exit := p.Exit(); exit.Code != 3 || strings.TrimSpace(p.Stderr()) != "ready" {
		t.Errorf("%v, stderr %q", exit, p.Stderr())
	}
	p.Close() // twice is as good
	p.Kill()
}

// TestPeerEnds shows that whatever a command does, closing it ends it and its group.
func TestPeerEnds(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"ignores its input": `echo; exec sleep 3600`,
		"ignores SIGTERM":   `trap '' TERM; echo; while :; do sleep 3600; done`,
		"leaves a child":    `sleep 3600 & echo; read x`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openSh(t, script)
			_, err := bufio.NewReader(p.Stdout).ReadString('\n')
			must(t, err)
			p.Close()
			if !Gone(p.cmd.Process.Pid) {
				t.Error("still there")
			}
		})
	}
}

// TestPeerDies shows that what a command has said before its end can still be read.
func TestPeerDies(t *testing.T) {
	t.Parallel()
	p := openSh(t, `echo last; echo why >&2; kill -9 $$`)
	<-p.Ended()
	said, err := io.ReadAll(p.Stdout)
	if err != nil || string(said) != "last\n" || p.Exit().Signal != "SIGKILL" || p.Stderr() != "why\n" {
		t.Errorf("%q, %v, %v, %q", said, err, p.Exit(), p.Stderr())
	}
}

func TestPeerStderr(t *testing.T) {
	t.Parallel()
	c := sh(`head -c 100000 /dev/zero | tr '\0' x >&2; echo end >&2`)
	p, err := Open(c)
	must(t, err)
	<-p.Ended()
	if got := p.Stderr(); len(got) != MaxTail || !strings.HasSuffix(got, "xend\n") {
		t.Errorf("%d bytes", len(got))
	}
	p.Close()
	var whole bytes.Buffer
	c.Stderr = &whole
	p, err = Open(c)
	must(t, err)
	<-p.Ended()
	if p.Close(); whole.Len() != 100004 || p.Stderr() != "" {
		t.Errorf("%d bytes", whole.Len())
	}
}

func TestPeerNotStarted(t *testing.T) {
	t.Parallel()
	if p, err := Open(Command{Path: "/nowhere/at/all"}); err == nil || !strings.Contains(err.Error(), "/nowhere/at/all") {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPeerStderrUntilNow shows that whoever has read a line of a command can read what the
// command wrote to its standard error before it, and forget that.
func TestPeerStderrUntilNow(t *testing.T) {
	t.Parallel()
	p := openSh(t, `while read line; do echo "about $line" >&2; echo "$line"; done`)
	out := bufio.NewReader(p.Stdout)
	for i := range 200 {
		_, err := fmt.Fprintf(p.Stdin, "%d\n", i)
		must(t, err)
		_, err = out.ReadString('\n')
		must(t, err)
		if got, want := p.Stderr(), fmt.Sprintf("about %d\n", i); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		if p.ForgetStderr(); p.Stderr() != "" {
			t.Fatal("not forgotten")
		}
	}
}
