package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Era says which revisions of the protocol have a method.
type Era int

// The eras: revision 2026-07-28 did away with the handshake, and with what a session
// has to remember.
const (
	Always Era = iota
	Legacy     // up to 2025-11-25
	Modern     // from 2026-07-28 on
)

// method answers the requests of one method of the protocol.
type method struct {
	era    Era
	answer func(ctx context.Context, params json.RawMessage) (mcp.ResultMetadata, error)
}

// Handle has the server answer a method of the protocol itself: mcp-go has the
// method not at all, or answers from lists that are the same for every client.
// Params that do not decode into P are refused. A result is a pointer to a struct
// that embeds [mcp.Result], nil for an empty one; what revision 2026-07-28 wants in every result is
// added. For errors see [NotFoundError]; every other is one of the params, unless
// its [tool.Fault] is internal.
//
// Methods are added before the first client comes.
func Handle[P any](s *Server, name mcp.MCPMethod, in Era, run func(ctx context.Context, call Call, params P) (mcp.ResultMetadata, error)) {
	s.methods[name] = method{era: in, answer: func(ctx context.Context, raw json.RawMessage) (mcp.ResultMetadata, error) {
		var params P
		if !isNull(raw) {
			if err := json.Unmarshal(raw, &params); err != nil {
				return nil, badParams(name, err)
			}
		}
		return run(ctx, callFrom(ctx), params)
	}}
}

// badParams says what is wrong with params that do not decode.
func badParams(name mcp.MCPMethod, err error) *rpcError {
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mistyped.Field != "" {
		return invalidParams("params.%s of %s must not be a JSON %s", mistyped.Field, name, mistyped.Value)
	}
	return invalidParams("the params of %s do not have the form the protocol gives them: %s", name, item.Clip(err.Error(), 200))
}

// answerOwn answers a request of a method that was added with [Handle]. It reports
// whether it has; it leaves to mcp-go what that refuses in every method.
func (s *Server) answerOwn(ctx context.Context, msg message) (answer any, refusal *rpcError, mine bool) {
	m, ok := s.methods[msg.method]
	if !ok {
		return nil, nil, false
	}
	info := protocolInfo(msg)
	if info.Modern && (info.ClientCapabilities == nil || !mcp.IsValidProtocolVersion(info.ProtocolVersion)) {
		return nil, nil, false
	}
	if refusal := m.era.refuses(info.Modern, msg.method); refusal != nil {
		return nil, refusal, true
	}
	ctx = mcpserver.WithRequestProtocolInfo(ctx, info)
	if session, ok := mcpserver.ClientSessionFromContext(ctx).(*session); ok && info.Modern {
		session.declare(info)
	}
	result, err := s.answerSafely(ctx, m, msg)
	if err != nil {
		return nil, s.rpcErrorOf(ctx, msg.method, err), true
	}
	if result == nil {
		result = &mcp.Result{}
	}
	if info.Modern {
		s.decorate(result)
	}
	return result, nil, true
}

// answerSafely makes an error of a panic, as that of a tool.
func (s *Server) answerSafely(ctx context.Context, m method, msg message) (result mcp.ResultMetadata, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, &tool.PanicError{ToolID: string(msg.method), Value: v, Stack: debug.Stack()}
		}
	}()
	return m.answer(ctx, msg.params)
}

func (e Era) refuses(modern bool, name mcp.MCPMethod) *rpcError {
	switch {
	case e == Legacy && modern:
		return &rpcError{Code: mcp.METHOD_NOT_FOUND, Message: fmt.Sprintf("%s was removed in protocol revision %s", name, mcp.ProtocolVersion20260728)}
	case e == Modern && !modern:
		return &rpcError{Code: mcp.METHOD_NOT_FOUND, Message: fmt.Sprintf("%s needs protocol revision %s, declared in params._meta", name, mcp.ProtocolVersion20260728)}
	}
	return nil
}

// protocolInfo is what a request says about its revision and its client.
func protocolInfo(msg message) *mcpserver.RequestProtocolInfo {
	info := &mcpserver.RequestProtocolInfo{ProtocolVersion: msg.protocol, Modern: mcp.IsModernProtocol(msg.protocol)}
	var params struct {
		Meta *mcp.Meta `json:"_meta"`
	}
	if !info.Modern || json.Unmarshal(msg.params, &params) != nil {
		return info
	}
	info.ClientInfo, info.ClientCapabilities = params.Meta.ClientInfo(), params.Meta.ClientCapabilities()
	return info
}

// declare notes what a request of revision 2026-07-28 says about its client.
func (s *session) declare(info *mcpserver.RequestProtocolInfo) {
	if info.ClientInfo != nil {
		s.SetClientInfo(*info.ClientInfo)
	}
	s.SetClientCapabilities(*info.ClientCapabilities)
	s.Initialize()
}

// decorate adds what revision 2026-07-28 wants in a result. A result that names no
// hint for caching is to be asked for each time.
func (s *Server) decorate(result mcp.ResultMetadata) {
	if result.GetResultType() == "" {
		result.SetResultType(mcp.ResultTypeComplete)
	}
	result.EnsureResultMeta().SetServerInfo(s.shortInfo())
	hints, ok := result.(interface {
		mcp.CacheHintSetter
		TTL() (ms int64, given bool)
	})
	if !ok {
		return
	}
	if _, given := hints.TTL(); !given {
		hints.SetCacheHints(0, mcp.CacheScopePrivate)
	}
}

// NotFoundError says that a resource does not exist. The protocol has a code for it,
// which is not the same in all revisions.
type NotFoundError struct {
	URI string
	Err error // what was wrong and what is valid: a *tool.Fault
}

func (e *NotFoundError) Error() string { return e.Err.Error() }

func (e *NotFoundError) Unwrap() error { return e.Err }

// rpcErrorOf maps an error of a method to one of the protocol, whose data has what a
// tool would say beside its message.
func (s *Server) rpcErrorOf(ctx context.Context, name mcp.MCPMethod, err error) *rpcError {
	if e, ok := errors.AsType[*rpcError](err); ok {
		return e
	}
	fault := s.faultOf(ctx, string(name), err)
	data := map[string]any{}
	maps.Copy(data, fault.Details)
	data["code"] = fault.Code
	e := &rpcError{Code: mcp.INVALID_PARAMS, Message: fault.Message, Data: data}
	if fault.Hint != "" {
		e.Message = strings.TrimSuffix(e.Message, ".") + ". " + capitalised(fault.Hint)
	}
	if fault.Code == tool.CodeInternal {
		e.Code = mcp.INTERNAL_ERROR
	}
	if missing, ok := errors.AsType[*NotFoundError](err); ok {
		data["uri"] = item.Clip(missing.URI, maxShownURI)
		if !mcp.IsModernProtocol(mcpserver.RequestProtocolVersion(ctx)) {
			e.Code = mcp.RESOURCE_NOT_FOUND
		}
	}
	return e
}

// maxShownURI is how much of a URI an error repeats, in bytes.
const maxShownURI = 1024

// capitalised begins a sentence with a capital letter, unless it begins with a name: of a
// tool, a method or a URI.
func capitalised(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsFunc(strings.TrimRight(word, ",:;"), func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// adapt changes a result of mcp-go.
func (s *Server) adapt(result any) any {
	switch result := result.(type) {
	case mcp.DiscoverResult:
		result.Capabilities.Logging = nil // deprecated in the only revision that has the method
		return result
	case *mcp.CallToolResult:
		if result.Meta != nil && result.Meta.GetMetaField(mcp.MetaKeyServerInfo) != nil {
			result.Meta.SetServerInfo(s.shortInfo())
		}
		return plain(result)
	case mcp.ListToolsResult:
		if result.Meta != nil {
			result.Meta.SetServerInfo(s.shortInfo())
		}
	}
	return result
}
