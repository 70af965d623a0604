package httpclient

import (
	"errors"
	"fmt"
	"net/http"
)

const maxRedirects = 5

var errRedirect = errors.New("a redirect is not followed")

// checkRedirect follows a server elsewhere without the credentials of the tool. A
// body, which may hold some, is not sent on to another host.
func (r *request) checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: it redirects again and again", errRedirect)
	}
	if next.URL.Scheme == r.url.Scheme && next.URL.Host == r.url.Host {
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
