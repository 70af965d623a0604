package server

import (
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// openSession returns a server over HTTP with one session, which the test ends.
func openSession(t *testing.T) (*web, *webClient) {
	t.Helper()
	w := newWeb(New(Options{Version: "test"}), HTTPOptions{})
	c, refusal := w.open(t.Context(), false)
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	t.Cleanup(w.background.Wait)
	return w, c
}

// A session that is ended while a request of it is served, as DELETE does, is
// not kept until it would have timed out.
func TestEndedSessionIsNotKept(t *testing.T) {
	t.Parallel()
	w, c := openSession(t)
	w.end(t.Context(), c)
	w.leave(t.Context(), c)
	if c.idle != nil {
		c.idle.Stop()
		t.Error("a timer holds the session")
	}
}

// The messages of mcp-go to a client that has no stream open take little memory.
func TestUnreadNotificationsAreBounded(t *testing.T) {
	t.Parallel()
	w, c := openSession(t)
	note := strings.Repeat("x", 1<<10)
	for range 4 * maxUnread / len(note) {
		c.conn.session.send(encodeMessage("", mcp.MethodNotificationToolsListChanged, note))
	}
	if batch, _ := c.conn.out.take(nil); len(batch) == 0 || len(batch) > maxUnread+2*len(note) {
		t.Errorf("%d bytes are kept", len(batch))
	}
	w.end(t.Context(), c)
}
