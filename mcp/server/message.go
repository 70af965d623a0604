package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var utf8BOM = []byte("\xef\xbb\xbf")

// trimmed is data without what may stand around a message.
func trimmed(data []byte) []byte { return bytes.TrimSpace(bytes.TrimPrefix(data, utf8BOM)) }

// kind says what a message asks of its receiver.
type kind int

const (
	kindBlank        kind = iota // an empty line: nothing
	kindRequest                  // an answer with the same id
	kindNotification             // no answer
	kindResponse                 // to be given to whoever sent the request
)

// message is one JSON-RPC message of the client.
type message struct {
	kind   kind
	raw    json.RawMessage
	id     requestID     // of requests and responses
	method mcp.MCPMethod // of requests and notifications
	tool   string        // name that tools/call is given, or ""
	params json.RawMessage
	token  json.RawMessage // progress token of a request: a JSON string or number, or nil

	// protocol is the revision a request declares for itself, as revisions from
	// 2026-07-28 on want; "" otherwise.
	protocol string

	// traceparent is the span of its client that a request belongs to; "" without one
	// that is well-formed.
	traceparent string

	result json.RawMessage // of responses
	err    *rpcError       // of responses
}

// answerID is the id of an answer to the message: the zero id where there is no
// request that it could be about.
func (m *message) answerID() requestID {
	if m.kind == kindResponse {
		return requestID{}
	}
	return m.id
}

// parseMessage reads one message. With an error the message has the id to answer
// with, as far as it could be read.
func parseMessage(data []byte) (message, *rpcError) {
	data = trimmed(data)
	if len(data) == 0 {
		return message{kind: kindBlank}, nil
	}
	if data[0] == '[' {
		return message{}, noBatches()
	}
	var e struct {
		JSONRPC json.RawMessage `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(data, &e)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); mistyped || err == nil && data[0] != '{' {
		return message{}, invalidRequest("a message must be a JSON object")
	}
	if err != nil {
		return message{}, parseError("the message is not valid JSON: %v", err)
	}

	m := message{raw: data, params: e.Params, result: e.Result}
	id, idErr := parseID(e.ID)
	m.id = id
	answers := e.Result != nil || !isNull(e.Error)
	switch {
	case e.Method == nil && answers:
		return parseResponse(m, e.Error), nil
	case !utf8.Valid(data):
		return m, parseError("the message is not valid UTF-8")
	case idErr != nil && e.ID != nil:
		return m, invalidRequest("id %v", idErr)
	case string(e.JSONRPC) != `"2.0"`:
		return m, invalidRequest(`jsonrpc must be "2.0"`)
	case e.Method == nil:
		return m, invalidRequest("a message has a method, a result or an error; this one has none")
	case answers:
		return m, invalidRequest("a message with a method has no result or error")
	}
	return parseCall(m, e.Method)
}

// parseCall completes a request or notification.
func parseCall(m message, method json.RawMessage) (message, *rpcError) {
	if err := json.Unmarshal(method, &m.method); err != nil || m.method == "" {
		return m, invalidRequest("method must be a non-empty string")
	}
	if m.id.isZero() {
		m.kind = kindNotification
		return m, nil
	}
	m.kind = kindRequest
	if isNull(m.params) {
		return m, nil
	}
	var params struct {
		Name json.RawMessage `json:"name"`
		Meta json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(m.params, &params); err != nil {
		return m, invalidParams("params must be an object")
	}
	if m.method == mcp.MethodToolsCall && json.Unmarshal(params.Name, &m.tool) != nil {
		m.tool = "" // a name of another type is none
	}
	if isNull(params.Meta) {
		return m, nil
	}
	var meta struct {
		Token    json.RawMessage `json:"progressToken"`
		Protocol json.RawMessage `json:"io.modelcontextprotocol/protocolVersion"`
		Trace    json.RawMessage `json:"traceparent"`
	}
	if err := json.Unmarshal(params.Meta, &meta); err != nil {
		return m, invalidParams("params._meta must be an object")
	}
	// A token of another type asks for no progress.
	if token, err := parseID(meta.Token); err == nil {
		m.token = token.raw
	}
	// A version of another type is none.
	_ = json.Unmarshal(meta.Protocol, &m.protocol)
	m.traceparent = traceparentOf(meta.Trace)
	return m, nil
}

// traceparentOf reads W3C Trace Context's traceparent; one that is not well-formed, or of
// another type, is none.
func traceparentOf(raw json.RawMessage) string {
	const most = 256 // bytes; a later version may be longer than today's
	var text string
	if len(raw) > most || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	parent, ok := thread.ParseTraceparent(text)
	if !ok {
		return ""
	}
	return parent.String()
}

// parseResponse completes a response. However broken it is, it gets no answer:
// two ends that answer each other's errors would never stop.
func parseResponse(m message, failure json.RawMessage) message {
	m.kind = kindResponse
	if isNull(failure) {
		return m
	}
	m.err = &rpcError{}
	if err := json.Unmarshal(failure, m.err); err != nil {
		m.err = &rpcError{Code: mcp.INTERNAL_ERROR, Message: string(failure)}
	}
	return m
}

// isNull reports whether a member was left out or null.
func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }

// requestID is the id of a request as the client wrote it. It is echoed byte
// for byte, so that integers beyond 2^53 survive. The zero value is no id.
type requestID struct {
	raw json.RawMessage
	key string // equal for equal ids, however they are written
}

var errBadID = errors.New("must be a string or an integer")

// parseID reads a request id or a progress token, which have the same form.
// Any number passes: some languages write integers with a fraction.
func parseID(raw json.RawMessage) (requestID, error) {
	// An id is echoed as it is written, and what is no UTF-8 would make a line that is
	// no JSON.
	if len(raw) == 0 || !utf8.Valid(raw) {
		return requestID{}, errBadID
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return requestID{}, errBadID
		}
		return requestID{raw: raw, key: `"` + s}, nil
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil || n == "" {
		return requestID{}, errBadID
	}
	if _, err := n.Float64(); err != nil {
		return requestID{}, errBadID // many a client could not read it back
	}
	return requestID{raw: raw, key: n.String()}, nil
}

func (id requestID) isZero() bool { return id.raw == nil }

// String is the id as the client wrote it.
func (id requestID) String() string { return string(id.raw) }

// MarshalJSON writes the id back, or null for no id.
func (id requestID) MarshalJSON() ([]byte, error) {
	if id.isZero() {
		return []byte("null"), nil
	}
	return id.raw, nil
}
