package httpclient

import (
	"bytes"
	"context"
	"encoding/json"
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
	c, err := decode(p.Chain.Tool(), p.Config)
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
	origin := originOf(c.URL)
	r.guarded = strings.Contains(strings.ReplaceAll(origin, "${", ""), "{")
	if !r.guarded {
		path, query, found := strings.Cut(c.URL[len(origin):], "?")
		address = p.Text(origin, nil) + p.Text(path, escapeSegment)
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

// originOf is what of an address says where a request goes: all up to its path, or to its
// query or fragment where it has none.
func originOf(address string) string {
	from := 0
	if at := strings.Index(address, "://"); at >= 0 {
		from = at + len("://")
	}
	if length := strings.IndexAny(address[from:], "/?#"); length >= 0 {
		return address[:from+length]
	}
	return address
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
