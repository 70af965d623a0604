package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// maxStreams is how many streams for messages that belong to no call one client
// may have open.
const maxStreams = 8

// post serves POST /mcp: one message of a client, or a batch.
func (t *web) post(w http.ResponseWriter, r *http.Request) {
	accept := acceptedBy(r)
	if !accept.json && !accept.events {
		t.refuse(w, r, http.StatusNotAcceptable, invalidRequest("Accept must name application/json and text/event-stream"))
		return
	}
	data, ok := t.readPost(w, r)
	if !ok {
		return
	}
	if isBatch(data) {
		t.postBatch(w, r, data, accept)
		return
	}
	msg, ok := t.parsePost(w, r, data)
	if !ok {
		return
	}
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	switch {
	case mcp.IsModernProtocol(version) || mcp.IsModernProtocol(msg.protocol):
		t.postModern(w, r, msg, accept)
	case msg.kind == kindRequest && msg.method == mcp.MethodInitialize:
		t.postInitialize(w, r, msg, accept)
	case version != "" && !mcp.IsValidProtocolVersion(version):
		t.server.refuseHTTP(w, r, http.StatusBadRequest, msg.answerID(), invalidRequest("protocol version %q is not supported: initialize tells which are", item.Clip(version, 100)))
	default:
		c := t.enterSession(w, r, msg.answerID())
		if c == nil {
			return
		}
		defer t.leave(r.Context(), c)
		t.serve(w, r, c, msg, newReply(w, accept, 1))
	}
}

// postInitialize starts a session, which the answer names.
func (t *web) postInitialize(w http.ResponseWriter, r *http.Request, msg message, accept accepted) {
	c, refusal := t.open(r.Context(), false)
	if refusal != nil {
		t.server.refuseHTTP(w, r, http.StatusServiceUnavailable, msg.id, refusal)
		return
	}
	defer t.leave(r.Context(), c)
	p := newReply(w, accept, 1)
	// The handler of initialize has returned when receive does.
	answered := c.conn.receive(context.WithoutCancel(r.Context()), msg, p.out, true)
	if answered.refusal() != nil {
		t.end(r.Context(), c)
	} else {
		w.Header().Set(mcp.HeaderSessionID, c.key)
	}
	if p.write(r.Context()) != nil {
		t.end(r.Context(), c) // nobody knows the session's key
	}
}

// postModern serves a message of revision 2026-07-28 or later, which has no
// sessions: every request says all there is to know about its client.
func (t *web) postModern(w http.ResponseWriter, r *http.Request, msg message, accept accepted) {
	switch msg.kind {
	case kindNotification, kindBlank:
		// None is defined. A cancellation names an id that any other client may
		// use as well; requests are cancelled by closing their stream.
		w.WriteHeader(http.StatusAccepted)
		return
	case kindResponse:
		t.refuse(w, r, http.StatusBadRequest, invalidRequest("revision %s has no requests of servers, so there are no responses of clients", mcp.ProtocolVersion20260728))
		return
	case kindRequest:
	}
	if refusal := checkHeaders(r.Header, msg); refusal != nil {
		t.server.refuseHTTP(w, r, http.StatusBadRequest, msg.id, refusal)
		return
	}
	p := newReply(w, accept, 1)
	c, refusal := t.openOnce(p.out)
	if refusal != nil {
		t.server.refuseHTTP(w, r, http.StatusServiceUnavailable, msg.id, refusal)
		return
	}
	defer t.end(r.Context(), c)
	p.modern = true
	t.serve(w, r, c, msg, p)
}

// checkHeaders compares the headers that proxies look at with the message.
func checkHeaders(header http.Header, msg message) *rpcError {
	mismatch := func(text string) *rpcError { return &rpcError{Code: mcp.HEADER_MISMATCH, Message: text} }
	version := header.Get(mcp.HeaderProtocolVersion)
	switch {
	case version == "":
		return mismatch("the header " + mcp.HeaderProtocolVersion + " is missing")
	case msg.protocol == "" && !mcp.IsValidProtocolVersion(version):
		return unsupportedVersion(version)
	case msg.protocol == "":
		return invalidParams("params._meta needs %s, a string", mcp.MetaKeyProtocolVersion)
	case version != msg.protocol:
		return mismatch("the header " + mcp.HeaderProtocolVersion + " and " + mcp.MetaKeyProtocolVersion + " of params._meta differ")
	case !mcp.IsValidProtocolVersion(version):
		return nil // mcp-go's refusal names the versions there are
	}
	if err := mcp.ValidateStandardHeaders(header.Get, version, msg.method, msg.params); err != nil {
		return mismatch(err.Error())
	}
	return checkTaskHeader(header.Get(mcp.HeaderName), msg)
}

// unsupportedVersion refuses a protocol revision and names those there are, as mcp-go
// does for one that a message declares.
func unsupportedVersion(version string) *rpcError {
	unsupported := mcp.UnsupportedProtocolVersionError{Version: item.Clip(version, 100), Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
	return &rpcError{Code: unsupported.Code, Message: unsupported.Message, Data: unsupported.Data}
}

// checkTaskHeader compares the header that names a task (SEP-2663) with the message.
func checkTaskHeader(name string, msg message) *rpcError {
	var params taskParams
	if !strings.HasPrefix(string(msg.method), "tasks/") || name == "" {
		return nil
	}
	_ = json.Unmarshal(msg.params, &params) // then the id is empty, and differs
	if decoded, ok := mcp.DecodeHeaderValue(name); !ok || decoded != params.TaskID {
		return &rpcError{Code: mcp.HEADER_MISMATCH, Message: "the header " + mcp.HeaderName + " and params.taskId differ"}
	}
	return nil
}

// serve has the client's connection act on a message, and answers the POST.
func (t *web) serve(w http.ResponseWriter, r *http.Request, c *webClient, msg message, p *reply) {
	request := c.conn.receive(context.WithoutCancel(r.Context()), msg, p.out, true)
	if request == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.refusal = request.refusal
	if p.write(r.Context()) != nil {
		c.conn.drop(request, ErrClientGone)
	}
}

// enterSession finds the session a request of HTTP names. Without one it has
// answered, with the id of the JSON-RPC request in it, if there is one.
func (t *web) enterSession(w http.ResponseWriter, r *http.Request, id requestID) *webClient {
	key := r.Header.Get(mcp.HeaderSessionID)
	if key == "" {
		t.server.refuseHTTP(w, r, http.StatusBadRequest, id, invalidRequest("the header %s is missing: initialize first, its answer has it", mcp.HeaderSessionID))
		return nil
	}
	c := t.enter(key, false)
	if c == nil {
		t.server.refuseHTTP(w, r, http.StatusNotFound, id, invalidRequest("the session does not exist or has ended: initialize a new one"))
	}
	return c
}

// listen serves GET /mcp: a stream of messages that belong to no call.
func (t *web) listen(w http.ResponseWriter, r *http.Request) {
	if t.refuseModern(w, r) {
		return
	}
	if !acceptedBy(r).events {
		t.refuse(w, r, http.StatusNotAcceptable, invalidRequest("Accept must name text/event-stream"))
		return
	}
	c := t.enterSession(w, r, requestID{})
	if c == nil {
		return
	}
	defer t.leave(r.Context(), c)
	out := c.conn.out
	defer out.detach()
	if out.attach() > maxStreams {
		t.refuse(w, r, http.StatusConflict, invalidRequest("the session has %d streams open, the most there can be", maxStreams))
		return
	}
	stayOpen(w)
	if e, err := beginStream(w); err == nil {
		_ = e.pump(r.Context(), out) // the client may open another
	}
}

// delete serves DELETE /mcp: the end of a session.
func (t *web) delete(w http.ResponseWriter, r *http.Request) {
	if t.refuseModern(w, r) {
		return
	}
	c := t.enterSession(w, r, requestID{})
	if c == nil {
		return
	}
	defer t.leave(r.Context(), c)
	t.end(r.Context(), c)
	w.WriteHeader(http.StatusNoContent)
}

// refuseModern answers what newer revisions do not have, and HEAD, which no
// revision has.
func (t *web) refuseModern(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodHead && !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		return false
	}
	w.Header().Set("Allow", http.MethodPost)
	t.refuse(w, r, http.StatusMethodNotAllowed, invalidRequest("revision %s has POST only", mcp.ProtocolVersion20260728))
	return true
}
