package embed

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"unicode"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// NoneError says that there is no endpoint that could be asked: texts are searched by
// their words alone.
type NoneError struct {
	Why string
	Try string // what a person can do
}

func (e *NoneError) Error() string { return "no embeddings: " + e.Why }

// Kind says what is wrong with an endpoint.
type Kind string

// The kinds of [Error].
const (
	KindKey         Kind = "key"         // it refuses the key
	KindLimit       Kind = "limit"       // it was asked too much, and says when to come back
	KindQuota       Kind = "quota"       // the account has no money left
	KindModel       Kind = "model"       // it does not know the model, or cannot do what is asked of it
	KindUnreachable Kind = "unreachable" // no connection, or it fails itself
	KindSilent      Kind = "silent"      // it does not answer in time
	KindAnswer      Kind = "answer"      // what it answers cannot be used
	KindChanged     Kind = "changed"     // it answers with another model or dimension than before
)

// Error is a failure of an endpoint. Its text is rye-mcp's own; the endpoint's words
// are apart, as models take messages for the words of rye-mcp.
type Error struct {
	Kind  Kind
	Host  string // of the endpoint
	Model string // that was asked for
	What  string // that is wrong
	Says  string // the endpoint's words, one line, for people; may be empty
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("embeddings of %s at %s: %s", item.Shown(e.Model), e.Host, e.What)
}

func (e *Error) Unwrap() error { return e.Err }

// Try is what a person can do.
func (e *Error) Try() string {
	switch e.Kind {
	case KindKey:
		return "check the key that agent/memory.yaml names (api_key_env, api_key_keychain, api_key_command)"
	case KindLimit:
		return "try again later, or lower embedding.batch in agent/memory.yaml"
	case KindQuota:
		return "pay at the provider, or name another endpoint in agent/memory.yaml"
	case KindModel:
		return "check embedding.model and embedding.dimensions in agent/memory.yaml"
	case KindUnreachable, KindSilent:
		return "check that the endpoint runs: embedding.base_url in agent/memory.yaml, rye-mcp doctor"
	case KindChanged:
		return "rye-mcp doctor; then have rye/rag/reindex embed what is stored again"
	default:
		return "check that embedding.base_url in agent/memory.yaml is an endpoint of OpenAI's protocol for embeddings"
	}
}

// hostOf is the host of an address, for people.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the endpoint"
	}
	return u.Host
}

// fail makes an error about an endpoint.
func (e endpoint) fail(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Host: hostOf(e.baseURL), Model: e.model.ID, What: fmt.Sprintf(format, args...), Err: err}
}

// maxWords is how much of what an endpoint says of a failure is kept.
const maxWords = 200

// refused is the error of a failed call.
func (e endpoint) refused(api *llm.APIError) *Error {
	failed := e.fail(kindOf(api), api, "%s", whatOf(api))
	failed.Says = item.Clip(strings.Map(printable, api.Message), maxWords)
	return failed
}

func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return -1
	}
	return r
}

func kindOf(api *llm.APIError) Kind {
	switch {
	case api.Type == wire.TypeStalled:
		return KindSilent
	case api.Status == 0:
		return KindUnreachable
	case api.Type == wire.TypeMalformed, api.Status/100 == 2, api.Status/100 == 3:
		return KindAnswer
	case api.Status == http.StatusUnauthorized, api.Status == http.StatusForbidden:
		return KindKey
	case api.Code == "insufficient_quota", api.Status == http.StatusPaymentRequired:
		return KindQuota
	case api.Status == http.StatusTooManyRequests, api.Status == wire.StatusOverloaded:
		return KindLimit
	case api.Status >= http.StatusInternalServerError, api.Status == http.StatusRequestTimeout:
		return KindUnreachable
	}
	return KindModel
}

// whatOf says what is wrong without repeating a sentence of the endpoint's.
func whatOf(api *llm.APIError) string {
	switch {
	case api.Type == wire.TypeStalled:
		return "it did not answer in time"
	case errors.Is(api.Err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case api.Status == 0:
		return "no connection, or it was cut"
	case api.Status/100 == 3:
		return "it redirects, which is not followed, as that would carry the key elsewhere; set base_url to the address it really has"
	}
	name := cmp.Or(api.Code, api.Type)
	if name == "" || !item.IsPlain(name) {
		return fmt.Sprintf("HTTP %d", api.Status)
	}
	return fmt.Sprintf("HTTP %d (%s)", api.Status, name)
}
