package wire

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// Types of errors that arise on this side of the wire; all others are the
// vendor's.
const (
	TypeStalled    = "stalled"               // silent for too long, by Config.StallTimeout or FirstTimeout
	TypeConnection = "connection_error"      // no connection, or it was cut
	TypeMalformed  = "malformed_answer"      // the answer does not follow the protocol
	TypeWhole      = "not_streamed"          // the answer is there, in one piece
	TypeTooLong    = "answer_too_long"       // the answer has more than MaxContent
	TypeRequest    = "invalid_request_error" // the request cannot be sent at all
)

// ErrCut is an answer that ended before it was complete.
var ErrCut = errors.New("connection cut: the answer ended before it was complete")

// maxErrorBody is how much of a failed answer is read.
const maxErrorBody = 64 << 10

// Fail turns the error of a vendor's library into what [llm.Client] promises:
// an error wrapping the cause of the caller's cancellation, or an *llm.APIError.
// ctx is the caller's own.
func (c *Call) Fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("model call: %w", context.Cause(ctx))
	}
	if c.stalled.Load() {
		return &llm.APIError{
			Type:      TypeStalled,
			Message:   c.clock.verdict(),
			MidStream: c.begun,
		}
	}
	var api *llm.APIError
	if errors.As(err, &api) {
		out := *api
		out.Message = c.clean(out.Message)
		out.MidStream = c.begun
		return &out
	}
	// url.Error repeats the address, which may hold a secret.
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err
	}
	message := c.clean(err.Error())
	if errors.Is(err, ErrCut) && !c.begun {
		message = "connection cut: the answer is empty"
	}
	return &llm.APIError{
		Type:      TypeConnection,
		Message:   message,
		MidStream: c.begun,
		Err:       c.withoutSecrets(err),
	}
}

// Malformed is the error of an answer that cannot be understood.
func Malformed(err error) error {
	return &llm.APIError{Status: http.StatusOK, Type: TypeMalformed, Message: err.Error(), Err: err}
}

// MaxContent is how much one answer may say, in bytes: several times what the largest
// models can. It is held in memory and written to transcript and registry.
const MaxContent = 4 << 20

// tooLong is the error of an answer that says more. It carries a status of the
// caller's mistakes, so that nobody pays for it again.
func tooLong() error {
	return &llm.APIError{Status: http.StatusBadRequest, Type: TypeTooLong, Message: fmt.Sprintf(
		"the answer is longer than %d MiB, the most that is taken; have the model write it in parts, or to a file", MaxContent>>20)}
}

// Unsendable is the error of a request that the vendor's library refuses to
// send. It carries the status the vendor would have answered with, so that
// nobody takes it for a failure that passes.
func Unsendable(err error) error {
	return &llm.APIError{Status: http.StatusBadRequest, Type: TypeRequest, Message: err.Error(), Err: err}
}

// StreamError is an error that the provider sent inside an answer, where the
// status line had already said 200. Its Status is the one the vendor documents
// for its type, so that it is classified like the same error at the start of
// an answer; an unknown type counts as a failure of the provider.
func (c *Call) StreamError(event []byte) error {
	e := parseError(c.redactBytes(event))
	if e.Status == 0 {
		e.Status = cmp.Or(statusOf(e.Type, e.Code), http.StatusInternalServerError)
	}
	return e
}

// refusal reads an answer that is not a success; it is nil for one that is.
func (c *Call) refusal(resp *http.Response) error {
	if resp.StatusCode/100 == 2 && (c.Whole || mayStream(resp)) {
		return nil
	}
	if resp.StatusCode/100 == 3 {
		return &llm.APIError{
			Status:  resp.StatusCode,
			Type:    TypeRequest,
			Message: "the provider redirects; set base_url to the address it really has",
		}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil && len(text) == 0 {
		text = []byte(err.Error())
	}
	e := parseError(c.redactBytes(text))
	e.Header = c.publicHeader(resp.Header)
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	if resp.StatusCode/100 == 2 {
		asRefusal(e, resp, text)
	} else {
		e.Status = resp.StatusCode
	}
	return e
}

// mayStream reports whether an answer can be the stream of events that was asked
// for. Only what surely is none is ruled out: some servers name no type, or a
// wrong one.
func mayStream(resp *http.Response) bool {
	if resp.StatusCode == http.StatusNoContent {
		return false
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err != nil || kind != "text/html" && kind != "application/json"
}

// asRefusal completes the error of an answer that the status calls a success
// although it is no stream: an error object says what it is, as within a
// stream. Anything else may have cost something: an answer in one piece has, and what is
// neither makes no sense.
func asRefusal(e *llm.APIError, resp *http.Response, body []byte) {
	if e.Status = cmp.Or(e.Status, statusOf(e.Type, e.Code)); e.Status != 0 {
		return
	}
	kind := resp.Header.Get("Content-Type")
	switch e.Status = resp.StatusCode; {
	case holdsError(body):
		e.Status = http.StatusInternalServerError
	case isWhole(body):
		e.Whole, e.Type, e.Message = true, TypeWhole, cut("the answer is "+kind+" in one piece instead of a stream of events; "+
			"have the gateway at base_url stream, or set base_url to an address that does")
	case kind != "" && !strings.HasPrefix(kind, "text/html"):
		e.Type, e.Message = TypeMalformed, cut("the answer is "+kind+" instead of a stream of events: "+e.Message)
	default:
		e.Type = TypeMalformed
	}
}

// holdsError reports whether a body has an error, of whatever shape.
func holdsError(body []byte) bool {
	return slices.ContainsFunc([]string{"error", "errors.0", "0.error"}, func(path string) bool {
		found := gjson.GetBytes(body, path)
		return found.Exists() && found.Type != gjson.Null
	})
}

// isWhole reports whether a body begins as an answer of one of the protocols does that
// is not streamed. It may be cut.
func isWhole(body []byte) bool {
	return slices.ContainsFunc([]string{"choices", "content", "output"}, func(member string) bool {
		return gjson.GetBytes(body, member).Exists()
	})
}

// publicHeader is the header of an answer without what grants access.
func (c *Call) publicHeader(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if name != "Set-Cookie" && len(values) > 0 {
			out.Set(name, c.clean(values[0]))
		}
	}
	return out
}

// withoutSecrets is err, or nil when its text would give a secret away.
func (c *Call) withoutSecrets(err error) error {
	if text := err.Error(); c.redact(text) != text {
		return nil
	}
	return err
}

// clean makes a text from outside fit for an error message.
func (c *Call) clean(text string) string { return cut(c.redact(text)) }

// redactBytes works on the raw text, before anything is cut off that would
// leave half a secret behind.
func (c *Call) redactBytes(text []byte) []byte { return []byte(c.redact(string(text))) }

// redact removes the key, the values of the configured headers, and the password
// in the address.
func (c *Call) redact(text string) string {
	for _, secret := range c.cfg.secrets() {
		// Shorter values are words like "true", which are no secret and would
		// garble the message.
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

// secrets are the key and whatever else is configured that grants access, in
// every form in which it is sent or quoted; longer forms before those they hold.
func (c Config) secrets() []string {
	secrets := append(c.querySecrets(), c.APIKey)
	for _, value := range c.Headers {
		_, credentials, _ := strings.Cut(value, " ") // "Bearer …"
		secrets = append(secrets, value, credentials)
	}
	if u, err := url.Parse(c.BaseURL); err == nil && u.User != nil {
		password, _ := u.User.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		_, escaped, _ := strings.Cut(u.User.String(), ":")
		secrets = append(secrets, basic, escaped, password)
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// minSecret is the length from which a configured value counts as a secret.
const minSecret = 6
