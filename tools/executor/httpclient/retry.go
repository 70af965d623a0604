package httpclient

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/rye-mcp/rye-mcp/tools/retryafter"
)

const (
	firstWait   = 500 * time.Millisecond // before the second attempt
	longestWait = 30 * time.Second
)

// again reports whether one more attempt can help, and does nothing twice: a request
// that changes something is repeated only when the server has not done it.
func (r *request) again(a answer, err error) bool {
	repeatable := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}, r.method)
	if err != nil {
		op, isOp := errors.AsType[*net.OpError](err)
		return !errors.Is(err, errTooLong) && !errors.Is(err, errRedirect) && (repeatable || isOp && op.Op == "dial")
	}
	switch a.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return repeatable
	}
	return false
}

// pace is how long to wait between attempts: as the server says in its last answer,
// else as the tool does.
func (c retries) pace(last *answer) retry.Backoff {
	steps := retry.NewExponential(firstWait)
	if c.Backoff == "linear" {
		wait := time.Duration(0)
		steps = retry.BackoffFunc(func() (time.Duration, bool) { wait += firstWait; return wait, false })
	}
	asked := retry.BackoffFunc(func() (time.Duration, bool) {
		wait, stop := steps.Next()
		if said, asked := retryafter.Wait(last.header.Get("Retry-After"), time.Now()); asked {
			wait = max(time.Millisecond, said) // none would be the longest
		}
		return wait, stop
	})
	return retry.WithMaxRetries(uint64(max(0, c.MaxAttempts-1)), retry.WithCappedDuration(longestWait, asked))
}
