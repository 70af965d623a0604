package httpclient

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

const maxRedirects = 5

var errRedirect = errors.New("a redirect is not followed")

// checkRedirect follows a server elsewhere without the credentials of the tool. A
// body, which may hold some, is not sent on to another host.
func (r *request) checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: it redirects again and again", errRedirect)
	}
	if r.isOwn(next.URL) {
		return nil
	}
	if next.Body != nil && next.Body != http.NoBody {
		return fmt.Errorf("%w: it sends the body on to %s", errRedirect, next.URL.Host)
	}
	for _, name := range r.secret {
		next.Header.Del(name)
	}
	next.Header.Del("Cookie")
	next.Header.Del("Referer") // the address may hold a key
	return nil
}

// isOwn reports whether an address is of the host that the request was made for, by the
// same scheme.
func (r *request) isOwn(u *url.URL) bool { return u.Scheme == r.url.Scheme && u.Host == r.url.Host }

// byTarget sends each request of a chain of redirects where its host belongs: the tool has
// named the host of the first alone.
type byTarget struct {
	client *Client
	of     *request
}

// RoundTrip implements [http.RoundTripper].
func (t *byTarget) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.of.guarded && t.of.isOwn(r.URL) {
		return t.client.fixed.RoundTrip(r)
	}
	return t.client.chosen.RoundTrip(r)
}
