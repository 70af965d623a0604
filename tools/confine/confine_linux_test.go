package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/tools/confine/confinetest"
	"github.com/rye-mcp/rye-mcp/tools/confine/inside"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// terminalVariable has the tests run a command on the terminal that they were started on, confined as it says.
const terminalVariable = "RYE_TEST_TERMINAL"

// onTerminal runs a command that writes to the terminal of this process.
func onTerminal(mode Mode) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := process.Command{Path: "sh", Args: []string{"-c", "echo x > /dev/tty && echo ESCAPED"}, Dir: "/", Env: process.ToolEnv(os.Environ())}
	if _, err := (&Confiner{Self: self}).Apply(context.Background(), mode, Policy{}, &command); err != nil {
		return err
	}
	result, err := process.Run(context.Background(), command)
	_, writeErr := os.Stdout.Write(append(result.Stdout, result.Stderr...))
	return errors.Join(err, writeErr)
}

// hiddenVariable has the tests run with their memory hidden, as the program does.
const hiddenVariable = "RYE_TEST_HIDDEN"

func TestMain(m *testing.M) {
	inside.Main(os.Args, os.Environ())
	if os.Getenv(hiddenVariable) != "" {
		if err := process.HideMemory(); err != nil {
			panic(err)
		}
	}
	if mode := os.Getenv(terminalVariable); mode != "" {
		if err := onTerminal(Mode(mode)); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// confiner is one on a system that has everything; without, the test says so.
func confiner(t *testing.T) *Confiner {
	t.Helper()
	c := &Confiner{Self: self(t)}
	if has := c.Available(t.Context()); !has.Whole() {
		confinetest.Skip(t, has.String())
	}
	return c
}

// place is a project with a key beside it, and a policy for it.
type place struct {
	*testing.T

	root, project, home string
	policy              Policy
}

func newPlace(t *testing.T) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, root: root, project: filepath.Join(root, "project"), home: filepath.Join(root, "home")}
	p.write("project/.ai/config/agent.yaml", "a: 1")
	p.write("project/.ai/state/threads/x", "state")
	p.write("project/.git/config", "[core]")
	p.write("project/a.txt", "a")
	p.write("home/.ai/keys/private", "s3cret")
	p.write("home/file", "s3cret")
	p.write("outside/x", "x")
	p.write("tmp/x", "x")
	p.policy = Policy{
		Writable: []string{p.project, filepath.Join(root, "tmp"), filepath.Join(root, "missing")},
		ReadOnly: []string{filepath.Join(p.project, ".ai/config"), filepath.Join(p.project, ".git"), filepath.Join(p.project, "missing")},
		Hidden:   []string{filepath.Join(p.home, ".ai"), filepath.Join(p.home, "file"), filepath.Join(p.project, ".ai/state"), filepath.Join(root, "missing")},
	}
	return p
}

func (p *place) write(name, content string) {
	p.Helper()
	path := filepath.Join(p.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		p.Fatal(err)
	}
}

// run runs a script of the shell in the project, confined.
func (p *place) run(c *Confiner, script string) process.Result {
	p.Helper()
	return p.runCommand(c, p.command(script))
}

func (p *place) command(script string) process.Command {
	return process.Command{Path: "sh", Args: []string{"-c", script}, Dir: p.project, Env: process.ToolEnv(os.Environ(), "ROOT="+p.root)}
}

func (p *place) runCommand(c *Confiner, command process.Command) process.Result {
	p.Helper()
	if _, err := c.Apply(p.Context(), Required, p.policy, &command); err != nil {
		p.Fatal(err)
	}
	result, err := process.Run(p.Context(), command)
	if err != nil {
		p.Fatal(err)
	}
	return result
}

func TestWhatACommandMay(t *testing.T) {
	t.Parallel()
	c, p := confiner(t), newPlace(t)
	got := p.run(c, `set -e; echo b > b.txt; mkdir -p d/e; mv b.txt d/e/c; cat d/e/c .git/config .ai/config/agent.yaml; echo x > $ROOT/tmp/y; ln -s a.txt l; truncate -s 0 a.txt; echo > /dev/null; (sleep 60 & kill $!); id -u; exit 3`)
	if want := fmt.Sprintf("b\n[core]a: 1%d\n", os.Getuid()); got.ExitCode != 3 || string(got.Stdout) != want {
		t.Errorf("%+v\n%s\n%s", got, got.Stdout, got.Stderr)
	}
	if info, err := os.Stat(filepath.Join(p.project, "d/e/c")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestAttackConfined: a tool tries to write outside its project, to change settings and history, to read keys and state, to reach the network and to signal others. None of it works.
func TestAttackConfined(t *testing.T) {
	t.Parallel()
	c := confiner(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	// Each attempt succeeds where nothing is confined, apart from those that would do harm
	// there, or depend on who runs the test.
	for name, attempt := range map[string]struct {
		script string
		harm   bool
	}{
		"write outside":            {`echo x > $ROOT/outside/y`, false},
		"change outside":           {`echo x >> $ROOT/outside/x`, false},
		"remove outside":           {`rm $ROOT/outside/x`, false},
		"rename out":               {`mv a.txt $ROOT/outside/a`, false},
		"link out":                 {`ln a.txt $ROOT/outside/a`, false},
		"through a link":           {`ln -s $ROOT/outside o && echo x > o/y`, false},
		"truncate outside":         {`truncate -s 0 $ROOT/outside/x`, false},
		"write /tmp":               {`echo x > /tmp/confined-$$ && rm /tmp/confined-$$`, false},
		"change settings":          {`echo x > .ai/config/agent.yaml`, false},
		"add settings":             {`echo x > .ai/config/new.yaml`, false},
		"replace settings":         {`mv .ai/config .ai/old`, false},
		"move what holds them":     {`mv .ai .old`, false},
		"from within":              {`cd .ai/config && echo x > new.yaml`, false},
		"change history":           {`echo x >> .git/config`, false},
		"add a hook":               {`mkdir .git/hooks`, false},
		"read a key":               {`grep s3cret $ROOT/home/.ai/keys/private`, false},
		"read a file":              {`grep s3cret $ROOT/home/file`, false},
		"read state":               {`cat .ai/state/threads/x`, false},
		"write state":              {`echo x > .ai/state/threads/y`, false},
		"through a parent":         {`cat /proc/` + fmt.Sprint(os.Getpid()) + `/root$ROOT/home/.ai/keys/private`, false},
		"through its folder":       {`cat /proc/` + fmt.Sprint(os.Getpid()) + `/cwd/confine.go`, false},
		"an environment":           {`cat /proc/` + fmt.Sprint(os.Getpid()) + `/environ`, true},
		"unmount":                  {`umount $ROOT/home/.ai`, true},
		"unmount, again root":      {`unshare -Ur umount $ROOT/home/.ai`, true},
		"unmount, mounts anew":     {`unshare -Urm umount $ROOT/home/.ai`, true},
		"mount over":               {`unshare -Urm mount -t tmpfs x $ROOT/outside`, true},
		"signal who started it":    {`kill -0 ` + fmt.Sprint(os.Getpid()), false},
		"kill all":                 {`kill -9 -1 2>/dev/null; kill -0 ` + fmt.Sprint(os.Getpid()), true},
		"network of the machine":   {`bash -c 'exec 3<>/dev/tcp/127.0.0.1/` + fmt.Sprint(listener.Addr().(*net.TCPAddr).Port) + `'`, false},
		"another network":          {`nsenter -t ` + fmt.Sprint(os.Getpid()) + ` -n true`, true},
		"capabilities":             {`grep CapEff /proc/self/status | grep -v 0000000000000000`, true},
		"a file of who started it": {`ls -l /proc/self/fd | grep -E 'socket|listener'`, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			script := "(" + attempt.script + ") && echo ESCAPED"
			if got := p.run(c, script); strings.Contains(string(got.Stdout), "ESCAPED") {
				t.Errorf("%s%s", got.Stdout, got.Stderr)
			}
			if content, err := os.ReadFile(filepath.Join(p.root, "outside/x")); err != nil || string(content) != "x" {
				t.Errorf("%q, %v", content, err)
			}
			if attempt.harm {
				return
			}
			free, err := process.Run(t.Context(), p.command(script))
			if err != nil || !strings.Contains(string(free.Stdout), "ESCAPED") {
				t.Errorf("the attempt fails where nothing is confined: %s, %v", free.Stderr, err)
			}
		})
	}
}

// newTerminal is a terminal of the person's, and its path.
func newTerminal(t *testing.T) (terminal *os.File, path string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	path = fmt.Sprintf("/dev/pts/%d", number)
	if terminal, err = os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal, path
}

// TestAttackTerminals: a command writes to the terminals of the person, where it could read what is typed. It has terminals of its own, and they work.
func TestAttackTerminals(t *testing.T) {
	t.Parallel()
	c, p := confiner(t), newPlace(t)
	_, name := newTerminal(t)
	got := p.run(c, "ls /dev/pts; echo x > "+name+" && echo ESCAPED")
	if string(got.Stdout) != "ptmx\n" {
		t.Errorf("%s%s", got.Stdout, got.Stderr)
	}
	if _, err := exec.LookPath("script"); err != nil {
		return
	}
	if got := p.run(c, "script -qec 'tty; stty size' /dev/null"); !strings.Contains(string(got.Stdout), "/dev/pts/0") {
		t.Errorf("no terminal of its own: %s%s", got.Stdout, got.Stderr)
	}
}

// TestAttackOwnTerminal: a command writes to the terminal on which the server was started, as that of an editor's. It has left it.
func TestAttackOwnTerminal(t *testing.T) {
	t.Parallel()
	program := confiner(t).Self
	for mode, want := range map[Mode]string{Off: "ESCAPED\n", Required: ""} {
		terminal, _ := newTerminal(t)
		cmd := exec.Command(program)
		cmd.Env, cmd.Stdin = append(os.Environ(), terminalVariable+"="+string(mode)), terminal
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		said, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(said), want) || want == "" && strings.Contains(string(said), "ESCAPED") {
			t.Errorf("%s: %s, %v", mode, said, err)
		}
	}
}

// TestAttackBelowTheMounts: a command begins in a folder that is read-only, or above one. Its own folder is none that the mounts do not cover.
func TestAttackBelowTheMounts(t *testing.T) {
	t.Parallel()
	c, p := confiner(t), newPlace(t)
	p.policy.Writable = append(p.policy.Writable, p.root) // as where projects are below a folder that may be written
	for dir, script := range map[string]string{
		".ai/config": `echo x > new.yaml`,
		".git":       `echo x > new`,
		".ai":        `echo x > config/new.yaml`,
		"":           `mv .ai .old || mv $PWD $ROOT/elsewhere || cat .ai/state/threads/x`,
	} {
		command := p.command("(" + script + ") && echo ESCAPED")
		command.Dir = filepath.Join(p.project, dir)
		if got := p.runCommand(c, command); strings.Contains(string(got.Stdout), "ESCAPED") || got.ExitCode == inside.Failed {
			t.Errorf("in %q: %+v %s%s", dir, got.ExitCode, got.Stdout, got.Stderr)
		}
	}
	command := p.command("cat threads/x && echo ESCAPED")
	command.Dir = filepath.Join(p.project, ".ai/state/threads")
	if got := p.runCommand(c, command); got.ExitCode != inside.Failed || !strings.Contains(string(got.Stderr), "the folder of the command") {
		t.Errorf("in a hidden folder: %+v %s%s", got.ExitCode, got.Stdout, got.Stderr)
	}
}

// TestAttackNetwork: a tool that declares one host asks for others. It reaches the declared one, and no other, whichever way it goes.
func TestAttackNetwork(t *testing.T) {
	t.Parallel()
	c, p := confiner(t), newPlace(t)
	serve := func(said string) *url.URL {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, said) }))
		t.Cleanup(s.Close)
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	declared, other := serve("declared"), serve("other")
	p.policy.Network = Network{Hosts: []string{declared.Host}}
	// The proxy is spoken to as it is, so that no client's rule about local names counts.
	script := func(target string) string {
		return `hostport=${http_proxy#http://}; exec bash -c 'exec 3<>/dev/tcp/${0%:*}/${0#*:}; printf "GET ` + target + ` HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" >&3; cat <&3' $hostport`
	}
	tunnel := func(target string) string {
		return `hostport=${http_proxy#http://}; exec bash -c 'exec 3<>/dev/tcp/${0%:*}/${0#*:}; printf "CONNECT ` + target + ` HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" >&3; cat <&3' $hostport`
	}
	for name, test := range map[string]struct{ script, want, never string }{
		"declared":         {script(declared.String()), "declared", "403"},
		"other port":       {script(other.String()), "403", "other\n"},
		"other host":       {script("http://example.com/"), "403", "200 OK"},
		"tunnel":           {tunnel(declared.Host), "declared", "403"},
		"tunnel elsewhere": {tunnel(other.Host), "403", "HTTP/1.1 200"},
		"no proxy request": {script("/"), "400", "200 OK"},
		"around the proxy": {`exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/` + declared.Port() + ` && echo reached'`, "", "reached"},
	} {
		result := p.run(c, test.script)
		got := string(result.Stdout) + string(result.Stderr)
		if !strings.Contains(got, test.want) || strings.Contains(got, test.never) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestCredentials shows that a tool which holds no key can use one: the proxy puts it
// into requests to the host that it is for, and takes off what the tool put there.
func TestCredentials(t *testing.T) {
	t.Parallel()
	c, p := confiner(t), newPlace(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s has %q", r.Host, r.URL, r.Header["Authorization"])
	}))
	t.Cleanup(s.Close)
	p.policy.Network = Network{
		Hosts:       []string{"plain.invalid"},
		Credentials: []Credential{{URL: s.URL, Host: "api.invalid", Header: "Authorization", Value: "Bearer s3cret"}},
	}
	ask := func(target string) string {
		got := p.run(c, `env | grep -i s3cret; hostport=${http_proxy#http://}; exec bash -c 'exec 3<>/dev/tcp/${0%:*}/${0#*:}; printf "GET `+target+` HTTP/1.1\r\nHost: x\r\nAuthorization: mine\r\nConnection: close\r\n\r\n" >&3; cat <&3' $hostport`)
		return string(got.Stdout) + string(got.Stderr)
	}
	if got := ask("http://api.invalid/a?b=c"); !strings.Contains(got, strings.TrimPrefix(s.URL, "http://")+` /a?b=c has ["Bearer s3cret"]`) {
		t.Error(got)
	}
	if got := ask("http://other.invalid/"); !strings.Contains(got, "403") || strings.Contains(got, "s3cret") {
		t.Error(got)
	}
	if got := ask("http://plain.invalid/"); !strings.Contains(got, "502") || strings.Contains(got, "s3cret") {
		t.Error(got)
	}
}

// TestAttackCancelledProbe: the first call of a tool is cancelled while it is found out what can be confined. The next one is confined all the same.
func TestAttackCancelledProbe(t *testing.T) {
	t.Parallel()
	want := confiner(t).Available(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := (&Confiner{Self: self(t)}).Available(ctx); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	none := &Confiner{Self: "/nowhere"}
	command := process.Command{Path: "true"}
	if has, err := none.Apply(t.Context(), Required, Policy{}, &command); !errors.Is(err, ErrUnavailable) || has.Namespaces || has.Why == "" {
		t.Errorf("%+v, %v", has, err)
	}
	if has, err := none.Apply(t.Context(), Off, Policy{}, &command); err != nil || has != (Available{}) || command.Path != "true" {
		t.Errorf("%+v, %v, %+v", has, err, command)
	}
}

// TestNotStarted shows that a program that is not there is told as one, and that
// nothing of the proxy stays.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	c, p := confiner(t), newPlace(t)
	command := process.Command{Path: "no-such-program"}
	if _, err := c.Apply(t.Context(), WhenAvailable, p.policy, &command); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Error(err)
	}
	p.policy.Network = Network{Hosts: []string{"h"}}
	command = process.Command{Path: "/proc/self/mem", Dir: p.project}
	if err := os.WriteFile(filepath.Join(p.project, "broken"), []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	command.Path = filepath.Join(p.project, "broken")
	got := p.runCommand(c, command)
	if got.ExitCode != inside.Failed || !strings.Contains(string(got.Stderr), "cannot be confined") {
		t.Errorf("%+v %s", got, got.Stderr)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	c, p := confiner(t), newPlace(t)
	p.policy.Network = Network{Hosts: []string{"h"}}
	ctx, cancel := context.WithCancel(t.Context())
	command := process.Command{Path: "sh", Args: []string{"-c", "cat"}, Dir: p.project, Env: process.ToolEnv(os.Environ())}
	if _, err := c.Apply(ctx, Required, p.policy, &command); err != nil {
		t.Fatal(err)
	}
	peer, err := process.Open(command)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Stdin.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(peer.Stdout, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	cancel()
	peer.Close()
}

// TestAvailableBelowTemporary: what can be confined does not depend on the folder that the server was started in.
func TestAvailableBelowTemporary(t *testing.T) {
	c := confiner(t)
	want := c.Available(t.Context())
	t.Chdir(t.TempDir())
	if got := (&Confiner{Self: c.Self}).Available(t.Context()); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
