package httpclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// config is what a tool declares.
type config struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Query   map[string]any    `json:"query"`
	Body    any               `json:"body"`
	Auth    *auth             `json:"auth"`
	Retry   retries           `json:"retry"`
}

type auth struct {
	Type   string `json:"type"`   // bearer or api_key
	Token  string `json:"token"`  // of bearer
	Key    string `json:"key"`    // of api_key
	Header string `json:"header"` // of api_key; X-API-Key when empty
}

type retries struct {
	MaxAttempts int    `json:"max_attempts"`
	Backoff     string `json:"backoff"` // exponential or linear
}

// maxAttempts bounds what a tool can declare.
const maxAttempts = 10

// The keys that a configuration may have, and those of its mappings: timeout is the
// chain's.
var (
	configKeys = []string{"method", "url", "headers", "query", "body", "auth", "retry", "timeout"}
	innerKeys  = map[string][]string{"auth": {"type", "token", "key", "header"}, "retry": {"max_attempts", "backoff"}}
)

// methods are those that a tool may use.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Check implements [chain.Primitive].
func (c *Client) Check(of *chain.Chain) (notes []string, err error) {
	if _, err := decode(of.Tool(), of.Config); err != nil {
		return nil, err
	}
	return unread(of.Tool().ID, of.Config), nil
}

// decode reads a configuration, templates unfilled.
func decode(of *chain.Element, given map[string]any) (config, error) {
	raw, err := json.Marshal(given)
	if err != nil {
		return config{}, err
	}
	c := config{Method: http.MethodGet}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, invalid(of, "%s", misfit(err))
	}
	c.Method = strings.ToUpper(c.Method)
	switch {
	case c.URL == "":
		return c, invalid(of, "it names no url")
	case !slices.Contains(methods, c.Method):
		return c, invalid(of, "its method %s is none of %s", item.Shown(c.Method), strings.Join(methods, ", "))
	case c.Retry.MaxAttempts < 0 || c.Retry.MaxAttempts > maxAttempts:
		return c, invalid(of, "retry.max_attempts is %d; at most %d", c.Retry.MaxAttempts, maxAttempts)
	case !slices.Contains([]string{"", "exponential", "linear"}, c.Retry.Backoff):
		return c, invalid(of, "retry.backoff %q is neither exponential nor linear", c.Retry.Backoff)
	case c.Auth == nil,
		c.Auth.Type == "bearer" && c.Auth.Token != "", c.Auth.Type == "api_key" && c.Auth.Key != "":
		return c, nil
	}
	return c, invalid(of, "its auth is neither {type: bearer, token} nor {type: api_key, key, header}")
}

// misfit says which key of a configuration has a value of another type.
func misfit(err error) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return "its config cannot be read"
	}
	want := "a text"
	switch {
	case wrong.Field == "retry.backoff":
		want = "exponential or linear"
	case wrong.Field == "retry.max_attempts":
		want = "a whole number"
	case slices.Contains([]string{"headers", "query", "auth", "retry"}, wrong.Field):
		want = "a mapping"
	}
	return fmt.Sprintf("its config has a %s as %s, which must be %s", wrong.Value, wrong.Field, want)
}

// unread says which keys of a configuration nobody reads: neither the client nor a
// template.
func unread(id string, given map[string]any) (notes []string) {
	text := chain.TextOf(given)
	look := func(within string, keys map[string]any, known []string) {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if slices.Contains(known, key) || within == "" && strings.Contains(text, "{"+key+"}") {
				continue
			}
			note := fmt.Sprintf("config.%s%s of %s means nothing to an HTTP tool; there are %s", within, item.Shown(key), id, strings.Join(known, ", "))
			if near := tool.Nearest(key, known); near != "" {
				note = fmt.Sprintf("config.%s%s of %s means nothing to an HTTP tool; did you mean %s?", within, item.Shown(key), id, near)
			}
			notes = append(notes, note)
		}
	}
	look("", given, configKeys)
	for _, within := range slices.Sorted(maps.Keys(innerKeys)) {
		inner, _ := given[within].(map[string]any)
		look(within+".", inner, innerKeys[within])
	}
	return notes
}

func invalid(of *chain.Element, format string, args ...any) error {
	return tool.Faultf(tool.CodeInvalidItem, "the HTTP tool %s: %s", of.ID, fmt.Sprintf(format, args...)).With("path", of.Path).
		WithHint("Correct its config; the knowledge rye/core/tools describes it.")
}
