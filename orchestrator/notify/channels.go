package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/netguard"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Ways are the channels that settings ask for. Programs get an environment, in which
// they also find what they are told, and begin in a folder. They are none of the project's.
func Ways(set config.Notify, environ []string, home, project string) (all []Channel) {
	environ = process.Outside(environ, project)
	if len(set.Command) > 0 {
		all = append(all, command{argv: set.Command, environ: environ, home: home, project: project})
	}
	if set.Desktop {
		all = append(all, desktop{system: runtime.GOOS, environ: environ, home: home})
	}
	if set.Webhook != "" {
		all = append(all, webhook{set.Webhook})
	}
	return all
}

// maxSaid is how much of what a program or a server answers is read.
const maxSaid = 4 << 10

// command is a program of the user's. It is run without a shell, and nothing of a
// message is an argument.
type command struct {
	argv    []string
	environ []string
	home    string
	project string
}

func (command) Name() string { return "command" }

// Send implements [Channel].
func (c command) Send(ctx context.Context, m Message) error {
	path, err := Program(c.argv[0], c.environ, c.home)
	if err != nil {
		return err
	}
	return run(ctx, process.Command{Path: path, Args: c.argv[1:], Env: append(c.environ[:len(c.environ):len(c.environ)], c.variables(m)...), Dir: c.home})
}

// variables are the message as an environment.
func (c command) variables(m Message) []string {
	all := []string{
		"RYE_EVENT=" + m.Event, "RYE_THREAD_ID=" + string(m.ThreadID), "RYE_STATUS=" + string(m.Status), "RYE_DIRECTIVE=" + m.Directive,
		"RYE_QUESTION_ID=" + m.QuestionID, "RYE_SPEND=" + strings.TrimPrefix(m.Spend.String(), "$"), "RYE_PROJECT=" + c.project,
		"RYE_COUNT=" + strconv.Itoa(m.Count),
	}
	for i, id := range m.ThreadIDs {
		all = append(all, fmt.Sprintf("RYE_THREAD_ID_%d=%s", i+1, id))
	}
	return all
}

// Program finds the program of a command: by its whole path, which may begin with ~/, or
// by its name in the PATH of an environment.
func Program(name string, environ []string, home string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(home, rest)
	}
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return "", fmt.Errorf("the program %q is neither a name nor a whole path", name)
	}
	return process.Find(environ, name)
}

func run(ctx context.Context, c process.Command) error {
	c.MaxOutput, c.Timeout = maxSaid, sendTime
	result, err := process.Run(ctx, c)
	switch {
	case err != nil:
		return err
	case result.TimedOut || result.Cancelled:
		return fmt.Errorf("%s took more than %s", c.Path, sendTime)
	case result.ExitCode != 0:
		return fmt.Errorf("%s ended with code %d: %s", c.Path, result.ExitCode, firstLine(result.Stderr))
	}
	return nil
}

func firstLine(said []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(said), []byte("\n"))
	return item.Clip(string(line), 200)
}

// desktop shows a message beside what the person works with.
type desktop struct {
	system  string
	environ []string
	home    string
}

func (desktop) Name() string { return "desktop" }

// showIt is a program for osascript that takes the text as an argument.
const showIt = "on run argv\ndisplay notification (item 1 of argv) with title \"rye\"\nend run"

// DesktopProgram is what shows messages on a system; empty: there is nothing.
func DesktopProgram(system string) string {
	switch system {
	case "darwin":
		return "osascript"
	case "linux", "freebsd", "openbsd", "netbsd":
		return "notify-send"
	}
	return ""
}

// Send implements [Channel].
func (d desktop) Send(ctx context.Context, m Message) error {
	name := DesktopProgram(d.system)
	if name == "" {
		return errors.New("there is no way to show messages on " + d.system)
	}
	path, err := process.Find(d.environ, name)
	if err != nil {
		return err
	}
	return run(ctx, process.Command{Path: path, Args: d.args(m), Env: d.environ, Dir: d.home})
}

// args are those of the program. notify-send reads what it shows as markup.
func (d desktop) args(m Message) []string {
	text := sentence(m)
	if d.system == "darwin" {
		return []string{"-e", showIt, text}
	}
	return []string{"--app-name=rye", "--", "rye", html.EscapeString(text)}
}

// sentence is a message for a person.
func sentence(m Message) string {
	switch m.Event {
	case string(thread.Asked):
		return fmt.Sprintf("%s: thread %s asks", m.Project, m.ThreadID)
	case string(thread.Budget80):
		return fmt.Sprintf("%s: thread %s has spent 80 %% of its limit", m.Project, m.ThreadID)
	case Several:
		return fmt.Sprintf("%s: news of %d threads", m.Project, m.Count)
	}
	return fmt.Sprintf("%s: thread %s: %s, %s", m.Project, m.ThreadID, m.Status, m.Spend)
}

// webhook posts a message as JSON.
type webhook struct{ url string }

func (webhook) Name() string { return "webhook" }

// Send implements [Channel]. The host is the user's own choice, and may be private; where
// it would send on to is not.
func (w webhook) Send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	to, err := url.Parse(w.url)
	if err != nil {
		return errors.New("the address cannot be read") // it may hold a secret, which the error repeats
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rye-mcp")
	client := netguard.New(netguard.Settings{AllowHosts: []string{to.Host}}, nil).Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		if named, ok := errors.AsType[*url.Error](err); ok {
			err = named.Err // without the address
		}
		return fmt.Errorf("%s: %w", to.Host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, maxSaid)
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s answered %s", to.Host, resp.Status)
	}
	return nil
}
