package server

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// codeBusy refuses a request because too much is in flight. -32000 is the first
// of the codes that JSON-RPC 2.0 leaves to implementations.
const codeBusy = -32000

// rpcError is the error object of JSON-RPC 2.0, section 5.1.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error makes it what a method may fail with; it then is the answer as it stands.
func (e *rpcError) Error() string { return e.Message }

func parseError(format string, args ...any) *rpcError {
	return &rpcError{Code: mcp.PARSE_ERROR, Message: fmt.Sprintf(format, args...)}
}

func invalidRequest(format string, args ...any) *rpcError {
	return &rpcError{Code: mcp.INVALID_REQUEST, Message: fmt.Sprintf(format, args...)}
}

func invalidParams(format string, args ...any) *rpcError {
	return &rpcError{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf(format, args...)}
}

func internalError(format string, args ...any) *rpcError {
	return &rpcError{Code: mcp.INTERNAL_ERROR, Message: fmt.Sprintf(format, args...)}
}

func tooLongMessage() *rpcError {
	return invalidRequest("the message is longer than %d bytes, the most that is read", maxLine)
}

func busy(format string, args ...any) *rpcError {
	return &rpcError{Code: codeBusy, Message: fmt.Sprintf(format, args...)}
}

// encodeResult is the answer to request id that carries result.
func encodeResult(id requestID, result any) ([]byte, error) {
	return encode(struct {
		JSONRPC string    `json:"jsonrpc"`
		ID      requestID `json:"id"`
		Result  any       `json:"result"`
	}{mcp.JSONRPC_VERSION, id, result})
}

// encodeError is the answer to request id that carries e. The zero id, of a
// message whose id could not be read, becomes null.
func encodeError(id requestID, e *rpcError) ([]byte, error) {
	return encode(struct {
		JSONRPC string    `json:"jsonrpc"`
		ID      requestID `json:"id"`
		Error   *rpcError `json:"error"`
	}{mcp.JSONRPC_VERSION, id, e})
}

// encodeRefusal is encodeError for the answer to a request of HTTP. Without an
// id it has no member for one, as Streamable HTTP wants it.
func encodeRefusal(id requestID, e *rpcError) ([]byte, error) {
	return encode(struct {
		JSONRPC string    `json:"jsonrpc"`
		ID      requestID `json:"id,omitzero"`
		Error   *rpcError `json:"error"`
	}{mcp.JSONRPC_VERSION, id, e})
}

// encodeMessage is a notification or, with an id, a request to the client.
func encodeMessage(id string, method mcp.MCPMethod, params any) ([]byte, error) {
	return encode(struct {
		JSONRPC string        `json:"jsonrpc"`
		ID      string        `json:"id,omitempty"`
		Method  mcp.MCPMethod `json:"method"`
		Params  any           `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, id, method, params})
}

// encoded is what an encoder made, or nothing where it could not. That goes to
// the log: a message of the server's own has no error to answer with.
func (s *Server) encoded(msg []byte, err error) []byte {
	if err != nil {
		s.log.Error().Err(err).Msg("message to the client cannot be written as JSON")
		return nil
	}
	return msg
}

// encode writes v as one line of JSON, without the escapes that are for HTML:
// they make code three times as long to read for a model.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
