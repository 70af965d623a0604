package httpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

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

// configKeys are those that a configuration may have: timeout is the chain's.
var configKeys = []string{"method", "url", "headers", "query", "body", "auth", "retry", "timeout"}

// decode reads the configuration, templates unfilled.
func decode(p *chain.Plan) (config, error) {
	raw, err := json.Marshal(p.Config)
	if err != nil {
		return config{}, err
	}
	c := config{Method: http.MethodGet}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, invalid(p, "its config: %v", err)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Config)) {
		if !slices.Contains(configKeys, key) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("config.%s of %s means nothing to an HTTP tool; there are %s", key, p.Chain.Tool().ID, strings.Join(configKeys, ", ")))
		}
	}
	c.Method = strings.ToUpper(c.Method)
	switch {
	case c.URL == "":
		return c, invalid(p, "it names no url")
	case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, c.Method):
		return c, invalid(p, "its method %s is none of GET, HEAD, POST, PUT, PATCH, DELETE", c.Method)
	case c.Retry.MaxAttempts < 0 || c.Retry.MaxAttempts > maxAttempts:
		return c, invalid(p, "retry.max_attempts is %d; at most %d", c.Retry.MaxAttempts, maxAttempts)
	case !slices.Contains([]string{"", "exponential", "linear"}, c.Retry.Backoff):
		return c, invalid(p, "retry.backoff %q is neither exponential nor linear", c.Retry.Backoff)
	}
	return c, c.checkAuth(p)
}

func (c config) checkAuth(p *chain.Plan) error {
	switch {
	case c.Auth == nil:
		return nil
	case c.Auth.Type == "bearer" && c.Auth.Token != "", c.Auth.Type == "api_key" && c.Auth.Key != "":
		return nil
	}
	return invalid(p, "its auth is neither {type: bearer, token} nor {type: api_key, key, header}")
}

func invalid(p *chain.Plan, format string, args ...any) error {
	return tool.Faultf(tool.CodeInvalidItem, "the HTTP tool %s: %s", p.Chain.Tool().ID, fmt.Sprintf(format, args...))
}

// request is a request whose values are in their places. It can be sent again.
type request struct {
	method  string
	url     *url.URL
	header  http.Header
	secret  []string // names of headers that may hold credentials
	body    []byte
	retry   retries
	timeout time.Duration
	guarded bool // the address came from the caller
}

func newRequest(p *chain.Plan) (*request, error) {
	c, err := decode(p)
	if err != nil {
		return nil, err
	}
	r := &request{method: c.Method, header: http.Header{}, retry: c.Retry, timeout: p.Timeout}
	if err := r.setHeaders(p, c); err != nil {
		return nil, err
	}
	if err := r.setURL(p, c); err != nil {
		return nil, err
	}
	return r, r.setBody(p, c.Body)
}

// setHeaders puts headers and credentials in. A header with a variable in it may be
// a credential.
func (r *request) setHeaders(p *chain.Plan, c config) error {
	set := func(name, template string, secret bool) error {
		if p.Absent(template) {
			return nil
		}
		value := p.Text(template, nil)
		if strings.ContainsAny(value, "\r\n\x00") {
			return tool.Faultf(tool.CodeBadArguments, "the header %s would have a line break in it", name)
		}
		if secret || strings.Contains(template, "${") {
			r.secret = append(r.secret, name)
		}
		r.header.Set(name, value)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if err := set(name, c.Headers[name], http.CanonicalHeaderKey(name) == "Authorization"); err != nil {
			return err
		}
	}
	switch {
	case c.Auth == nil:
		return nil
	case c.Auth.Type == "bearer":
		return set("Authorization", "Bearer "+c.Auth.Token, true)
	case c.Auth.Header != "":
		return set(c.Auth.Header, c.Auth.Key, true)
	}
	return set("X-API-Key", c.Auth.Key, true)
}

// setURL puts values into the address: as one segment of its path, or as one value
// of its query. An address that is a parameter as a whole is the caller's.
func (r *request) setURL(p *chain.Plan, c config) error {
	address := p.Text(c.URL, nil)
	beforePath, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(c.URL, "https://"), "http://"), "/")
	r.guarded = strings.Contains(strings.ReplaceAll(beforePath, "${", ""), "{")
	if !r.guarded {
		path, query, found := strings.Cut(c.URL, "?")
		host := c.URL[:strings.Index(c.URL, beforePath)+len(beforePath)]
		address = p.Text(host, nil) + p.Text(strings.TrimPrefix(path, host), escapeSegment)
		if found {
			address += "?" + formOf(p, query)
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return tool.Faultf(tool.CodeBadArguments, "the address of the request is not one of http or https")
	}
	if r.guarded && (c.Auth != nil || len(r.secret) > 0 || u.User != nil || strings.Contains(chain.TextOf(p.Config), "${")) {
		return tool.Faultf(tool.CodeUnsupported, "%s has credentials, and a parameter would say which host they go to", p.Chain.Tool().ID).
			WithHint("The author of the tool puts the host into its url.")
	}
	added := u.Query()
	for name, value := range c.Query {
		if text := chain.TextOf(p.Fill(value)); text != "" {
			added.Set(name, text)
		}
	}
	if len(c.Query) > 0 {
		u.RawQuery = added.Encode()
	}
	r.url = u
	return nil
}

// formOf puts values into the pairs of a query or form. A pair whose value a call does not
// have is left out.
func formOf(p *chain.Plan, template string) string {
	pairs := strings.Split(template, "&")
	pairs = slices.DeleteFunc(pairs, func(pair string) bool {
		_, value, _ := strings.Cut(pair, "=")
		return p.Absent(value)
	})
	return p.Text(strings.Join(pairs, "&"), url.QueryEscape)
}

// escapeSegment keeps a value in its segment of a path: also one that is only dots.
func escapeSegment(value string) string {
	if strings.Trim(value, ".") == "" {
		return strings.ReplaceAll(value, ".", "%2E")
	}
	return url.PathEscape(value)
}

// setBody puts values into the body: an object is sent as JSON, a text is taken as
// what its content type says.
func (r *request) setBody(p *chain.Plan, body any) error {
	switch template := body.(type) {
	case nil:
		return nil
	case string:
		mediaType := r.header.Get("Content-Type")
		switch begin := strings.TrimSpace(template); {
		case strings.HasPrefix(mediaType, "application/x-www-form-urlencoded"):
			r.body = []byte(formOf(p, template))
		case strings.Contains(mediaType, "json"), mediaType == "" && begin != "" && strings.ContainsAny(begin[:1], "{["):
			r.body = []byte(p.Text(template, withinJSON))
			r.defaultType("application/json")
		default:
			r.body = []byte(p.Text(template, nil))
			r.defaultType("text/plain; charset=utf-8")
		}
	default:
		var err error
		if r.body, err = json.Marshal(p.Fill(template)); err != nil {
			return err
		}
		r.defaultType("application/json")
	}
	return nil
}

func (r *request) defaultType(mediaType string) {
	if r.header.Get("Content-Type") == "" {
		r.header.Set("Content-Type", mediaType)
	}
}

// withinJSON is a text as it stands within the quotes of a JSON string.
func withinJSON(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// fresh is the request for one more attempt.
func (r *request) fresh(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	fresh, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), body)
	if err == nil {
		fresh.Header = r.header.Clone()
	}
	return fresh, err
}
