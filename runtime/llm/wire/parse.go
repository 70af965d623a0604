package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// StatusOverloaded is Anthropic's own status: too much to do for everybody.
const StatusOverloaded = 529

// maxMessage is how many bytes of a provider's words are kept.
const maxMessage = 600

// parseError reads the body of a failed answer, or of an error event. Vendors
// agree on {"error": {"type", "code", "message"}} but not on the rest: Google
// wraps it in an array and says "status" for the type, Ollama and gateways send
// {"error": "text"}, {"message": …}, {"detail": …} or {"errors": […]}, some wrap the
// error of the provider behind them once more, proxies send a page of HTML.
// Status is set when the code is an HTTP status.
func parseError(body []byte) *llm.APIError {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var envelope struct {
		Error   json.RawMessage   `json:"error"`
		Errors  []json.RawMessage `json:"errors"`
		Message string            `json:"message"`
		Detail  json.RawMessage   `json:"detail"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return &llm.APIError{Message: page(string(body))}
	}
	if len(envelope.Error) == 0 && len(envelope.Errors) > 0 {
		envelope.Error = envelope.Errors[0]
	}
	var inner struct {
		Type    string          `json:"type"`
		Status  string          `json:"status"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Error   json.RawMessage `json:"error"`
	}
	// A field that does not fit stays empty; the fallbacks below take over.
	_ = json.Unmarshal(envelope.Error, &inner)
	if inner.Message == "" && bytes.HasPrefix(inner.Error, []byte("{")) {
		// Not the body again, however deep somebody has nested it.
		_ = json.Unmarshal(bytes.Clone(inner.Error), &inner) // a clone, as it has such a member too
	}
	e := &llm.APIError{Type: firstOf(inner.Type, inner.Status), Code: plain(inner.Code)}
	e.Message = cut(firstOf(inner.Message, envelope.Message, plain(envelope.Error), plain(envelope.Detail), string(body)))
	if n, err := strconv.Atoi(e.Code); err == nil && n >= 400 && n < 600 {
		e.Status = n
	}
	return e
}

// statusOf is the HTTP status of an error type, 0 for one that nobody documents.
// Sources: the "Errors" page of Anthropic's API reference and the "Error codes"
// guide of OpenAI's.
func statusOf(typ, code string) int {
	for _, name := range []string{code, typ} {
		switch name {
		case "invalid_request_error", "context_length_exceeded", "invalid_prompt":
			return http.StatusBadRequest
		case "authentication_error", "invalid_api_key":
			return http.StatusUnauthorized
		case "billing_error":
			return http.StatusPaymentRequired
		case "permission_error":
			return http.StatusForbidden
		case "not_found_error", "model_not_found":
			return http.StatusNotFound
		case "request_too_large":
			return http.StatusRequestEntityTooLarge
		case "rate_limit_error", "rate_limit_exceeded", "insufficient_quota":
			return http.StatusTooManyRequests
		case "timeout_error":
			return http.StatusGatewayTimeout
		case "api_error", "server_error":
			return http.StatusInternalServerError
		case "overloaded_error":
			return StatusOverloaded
		}
	}
	return 0
}

// plain is a JSON value as text: strings without quotes, null as nothing,
// numbers as they stand; anything else is left out.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// title finds the one telling part of an error page.
var title = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`) })

// page shortens what is not JSON: of HTML only the title is kept.
func page(text string) string {
	head := strings.ToLower(text[:min(len(text), 512)])
	if !strings.Contains(head, "<html") && !strings.Contains(head, "<!doctype") {
		return cut(text)
	}
	if m := title().FindStringSubmatch(text); m != nil {
		return cut("the answer is a web page titled " + strconv.Quote(strings.TrimSpace(m[1])))
	}
	return "the answer is a web page"
}

// cut makes one line of at most [maxMessage] bytes out of a text.
func cut(text string) string {
	if len(text) > 4*maxMessage {
		text = text[:4*maxMessage]
	}
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
