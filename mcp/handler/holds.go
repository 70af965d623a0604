package handler

import (
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// hold is how long a client waits for the answer to a call that names no time.
type hold struct {
	client string // what its name begins with, in small letters
	time   time.Duration
	// heard: only while the client hears of progress, which goes out every second.
	heard bool
	tried string // the version that this was seen with
	why   string
}

// toTheEnd is longer than any thread: its own limits end the wait.
const toTheEnd = 365 * 24 * time.Hour

// holds are the clients that wait longer than those that nothing is known of, the
// time-outs of which begin at 60 seconds. Each was tried with a server that answers late.
var holds = []hold{
	{
		client: "claude-code", time: toTheEnd, heard: true, tried: "2.1.197",
		why: "a call may take a day; without progress it is cut after 30 minutes (5 over HTTP)",
	},
	{client: "opencode", time: toTheEnd, heard: true, tried: "1.18.33", why: "each progress notification begins its 60 seconds anew; 351 were seen"},
	{client: "codex-mcp-client", time: 4 * time.Minute, tried: "0.169", why: "cut after 300 seconds, whatever the progress"},
	{client: "gemini-cli", time: 5 * time.Minute, tried: "0.61", why: "370 seconds without a word were seen to pass; progress does not prolong them"},
}

// holdOf is how long a call of a client may take; 0 where nothing is known.
func holdOf(s server.Session) time.Duration {
	name := strings.ToLower(s.Client)
	for _, h := range holds {
		if strings.HasPrefix(name, h.client) && (s.HearsProgress || !h.heard) {
			return h.time
		}
	}
	return 0
}
