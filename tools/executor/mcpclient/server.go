package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Transport is how a server is talked with.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // a command of this machine
	HTTP  Transport = "http"  // Streamable HTTP
)

// DefaultTimeout bounds a call of a server that says nothing else.
const DefaultTimeout = 60 * time.Second

// Server is how a server is reached. Values of secrets stand in Env and Headers
// already.
type Server struct {
	ID        string // item id, for errors
	Transport Transport

	Command string
	Args    []string
	Env     []string // the whole environment, KEY=value
	Dir     string

	URL     string
	Headers map[string]string

	Timeout time.Duration // of a call; 0: [DefaultTimeout]

	// prepare is called before the command is started.
	prepare func(context.Context, *process.Command) error
}

// Check says what is wrong with the server; nil for nothing.
func (s Server) Check() error {
	switch s.Transport {
	case Stdio:
		if s.Command == "" {
			return errors.New("it names no command")
		}
		return nil
	case HTTP:
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("its url %q is not one of http or https", s.URL)
		}
		if u.User != nil {
			return errors.New("its url holds a password; put it into headers")
		}
		return nil
	}
	return fmt.Errorf("its transport %q is neither stdio nor http", s.Transport)
}

func (s Server) timeout() time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return DefaultTimeout
}

// key tells servers apart: one that is declared otherwise gets a connection of its
// own.
func (s Server) key() string {
	headers := make([]string, 0, len(s.Headers))
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		headers = append(headers, name+":"+s.Headers[name])
	}
	return fmt.Sprintf("%q", []any{s.ID, s.Transport, s.Command, s.Args, s.Env, s.Dir, s.URL, strings.Join(headers, "\n")})
}
