package main_test

import (
	"context"
	"io"
	"slices"
	"strings"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/rogpeppe/go-internal/testscript"
)

type sessionKey struct{}

// session is a client of a script with the one server that it has started, as an editor
// has one: its calls cost no process. The server has the environment of the first call.
type session struct {
	on       bool
	at       caller // of the first call
	client   *mcpclient.Client
	log      lockedBuffer
	captured map[string]bool // variables that the script has made of answers
}

// newSession is what the command session of a script begins.
func newSession(env *testscript.Env) {
	s := &session{captured: map[string]bool{}}
	env.Values[sessionKey{}] = s
	env.Defer(func() { _ = s.end() })
}

func sessionOf(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

// useSession is session: the calls that follow are those of one client, whose server lives
// until the script ends. Calls with flags, from another folder or in another
// environment have a server of their own.
func useSession(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: session")
	}
	sessionOf(ts).on = true
}

// callTool is callTool with the server of the session; ran is false when the call
// has to have another.
func (s *session) callTool(at caller, args []string) (code int, ran bool) {
	if !s.on || len(args) != 2 || strings.HasPrefix(args[0], "-") {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitPatience)
	defer cancel()
	if s.client == nil {
		if err := s.begin(ctx, at); err != nil {
			return at.tell("", false, err), true
		}
	}
	if at.dir != s.at.dir || !slices.Equal(s.given(at), s.given(s.at)) {
		return 0, false
	}
	code = at.tell(callOn(ctx, s.client, args[0], args[1], nil))
	_, _ = io.WriteString(at.stderr, s.log.take())
	return code, true
}

func (s *session) begin(ctx context.Context, at caller) error {
	s.at = at
	at.stderr = &s.log
	s.client = at.client([]string{"--stdio"})
	if err := s.client.Start(ctx); err != nil {
		return err
	}
	return sayHello(ctx, s.client)
}

func (s *session) end() error {
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// given is the environment of a caller without what answers have said.
func (s *session) given(at caller) []string {
	return slices.DeleteFunc(slices.Clone(at.env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return s.captured[name]
	})
}
