package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxBatch is how many messages a batch may have.
const maxBatch = 100

// incoming is a message of the client, or what is wrong with it.
type incoming struct {
	msg     message
	refusal *rpcError
}

// answered reports whether the client gets something back for the message.
func (in incoming) answered() bool { return in.refusal != nil || in.msg.kind == kindRequest }

// isBatch reports whether data is meant to be several messages.
func isBatch(data []byte) bool {
	data = trimmed(data)
	return len(data) > 0 && data[0] == '['
}

// parse reads a message or a batch.
func (c *conn) parse(data []byte) ([]incoming, *rpcError) {
	if isBatch(data) {
		return c.parseBatch(data)
	}
	msg, refusal := parseMessage(data)
	return []incoming{{msg, refusal}}, nil
}

// parseBatch reads several messages, which only the clients of one revision may
// send. One that is broken does not hinder the others.
func (c *conn) parseBatch(data []byte) ([]incoming, *rpcError) {
	if c.session.ProtocolVersion() != mcp.ProtocolVersion20250326 {
		return nil, noBatches()
	}
	elements, refusal := splitBatch(data)
	if refusal != nil {
		return nil, refusal
	}
	batch := make([]incoming, len(elements))
	for i, element := range elements {
		in := &batch[i]
		in.msg, in.refusal = parseMessage(element)
		if in.refusal == nil && (in.msg.method == mcp.MethodInitialize || in.msg.protocol != "") {
			in.refusal = invalidRequest("initialize and messages of other revisions cannot be part of a batch")
		}
	}
	return batch, nil
}

// noBatches is the answer to a batch where there can be none.
func noBatches() *rpcError {
	return invalidRequest("batches are not supported: send each message by itself")
}

// splitBatch returns the elements of a JSON array. It stops at the first that is
// too many, before they take much more memory than the array.
func splitBatch(data []byte) ([]json.RawMessage, *rpcError) {
	d := json.NewDecoder(bytes.NewReader(trimmed(data)))
	_, err := d.Token() // the bracket
	var elements []json.RawMessage
	for err == nil && d.More() {
		if len(elements) == maxBatch {
			return nil, invalidRequest("a batch has at most %d messages", maxBatch)
		}
		var element json.RawMessage
		err = d.Decode(&element)
		elements = append(elements, element)
	}
	if err == nil {
		_, err = d.Token() // the other bracket
	}
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the array")
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	switch {
	case err != nil:
		return nil, parseError("the batch is not valid JSON: %v", err)
	case len(elements) == 0:
		return nil, invalidRequest("a batch has at least one message")
	}
	return elements, nil
}

// receiveBatch acts on the messages of a batch as on messages that come one
// after the other. It returns the requests among them.
func (c *conn) receiveBatch(ctx context.Context, batch []incoming, out *outbox, own bool) []*request {
	var requests []*request
	for _, in := range batch {
		if in.refusal != nil {
			c.refuse(out, own, in.msg.id, in.refusal)
		} else if r := c.receive(ctx, in.msg, out, own); r != nil {
			requests = append(requests, r)
		}
	}
	return requests
}

// postBatch serves a POST of several messages to /mcp. Their answers come in one
// stream, in the order in which they are ready.
func (t *web) postBatch(w http.ResponseWriter, r *http.Request, data []byte, accept accepted) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		t.refuse(w, r, http.StatusBadRequest, noBatches())
		return
	}
	c := t.enterSession(w, r, requestID{})
	if c == nil {
		return
	}
	defer t.leave(r.Context(), c)
	batch, refusal := c.conn.parseBatch(data)
	if refusal != nil {
		t.refuse(w, r, http.StatusBadRequest, refusal)
		return
	}
	answers := 0
	for _, in := range batch {
		if in.answered() {
			answers++
		}
	}
	if answers > 1 && !accept.events {
		t.refuse(w, r, http.StatusNotAcceptable, invalidRequest("Accept must name text/event-stream, which the answers to a batch come in"))
		return
	}
	p := newReply(w, accept, answers)
	requests := c.conn.receiveBatch(context.WithoutCancel(r.Context()), batch, p.out, true)
	if answers == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if p.write(r.Context()) != nil {
		for _, request := range requests {
			c.conn.drop(request, ErrClientGone)
		}
	}
}
