package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// sse serves GET /sse, the stream of a client of revision 2024-11-05. Its
// session lasts as long as the stream, whose first event says where the client
// is to post its messages.
func (t *web) sse(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead || !acceptedBy(r).events {
		t.refuse(w, r, http.StatusNotAcceptable, invalidRequest("GET /sse answers with text/event-stream"))
		return
	}
	c, refusal := t.open(r.Context(), true)
	if refusal != nil {
		t.refuse(w, r, http.StatusServiceUnavailable, refusal)
		return
	}
	defer t.end(r.Context(), c)
	c.conn.out.attach()
	stayOpen(w)
	e, err := beginStream(w)
	if err != nil {
		return
	}
	endpoint := "/message?" + url.Values{"sessionId": {c.key}}.Encode()
	if e.write(fmt.Appendf(nil, "event: endpoint\ndata: %s\n\n", endpoint)) == nil {
		_ = e.pump(r.Context(), c.conn.out) // the client has gone
	}
}

// message serves POST /message: one message or a batch of a client, whose answers
// go to its stream.
func (t *web) message(w http.ResponseWriter, r *http.Request) {
	c := t.enter(r.URL.Query().Get("sessionId"), true)
	if c == nil {
		t.refuse(w, r, http.StatusNotFound, invalidRequest("the stream of this session does not exist or has ended: open another with GET /sse"))
		return
	}
	defer t.leave(r.Context(), c)
	data, ok := t.readPost(w, r)
	if !ok {
		return
	}
	messages, refusal := c.conn.parse(data)
	if refusal != nil {
		t.refuse(w, r, http.StatusBadRequest, refusal)
		return
	}
	if only := messages[0]; len(messages) == 1 && only.refusal != nil {
		t.server.refuseHTTP(w, r, http.StatusBadRequest, only.msg.id, only.refusal)
		return
	}
	if c.conn.out.full() {
		t.server.refuseHTTP(w, r, http.StatusServiceUnavailable, messages[0].msg.answerID(), busy("answers wait to be read: read the stream, and send this again"))
		return
	}
	c.conn.receiveBatch(context.WithoutCancel(r.Context()), messages, c.conn.out, false)
	w.WriteHeader(http.StatusAccepted)
}
