package loop

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// category says what kind of failure a model call had.
type category string

const (
	categoryPermanent   category = "permanent"    // asking again cannot help
	categoryAuth        category = "auth"         // the key is missing or wrong
	categoryQuota       category = "quota"        // the account has no money left
	categoryTooLong     category = "context"      // the conversation does not fit the model
	categoryRateLimited category = "rate_limited" // later, as the provider says
	categoryTransient   category = "transient"    // soon
)

// class is a category with what follows from it.
type class struct {
	category category
	retry    bool
}

// classify sorts a failed call by status, type and words. Status codes are
// those of the Anthropic and OpenAI references; 529 is Anthropic's "overloaded".
// Without a status there was no answer, or it was cut; with 200 it made no
// sense. Both may go better the next time.
func classify(err *llm.APIError) class {
	words := strings.ToLower(err.Type + " " + err.Code + " " + err.Message)
	switch {
	case err.Status == http.StatusPaymentRequired, containsAny(words, "insufficient_quota", "billing", "credit balance"):
		return class{category: categoryQuota}
	case err.Status == http.StatusUnauthorized, err.Status == http.StatusForbidden:
		return class{category: categoryAuth}
	case containsAny(words, "context_length_exceeded", "prompt is too long", "maximum context length"):
		return class{category: categoryTooLong}
	case err.Status == http.StatusTooManyRequests, containsAny(words, "rate_limit"):
		return class{category: categoryRateLimited, retry: true}
	case err.Status/100 == 0, err.Status/100 == 2, err.Status >= http.StatusInternalServerError,
		err.Status == http.StatusRequestTimeout, err.Status == http.StatusConflict:
		return class{category: categoryTransient, retry: true}
	default:
		return class{category: categoryPermanent}
	}
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// backoff is the time to wait before attempt n (from 1) is repeated: what the
// provider asked for, else doubling from the base, with up to a quarter added
// so that threads that failed together do not come back together.
func backoff(n int, asked time.Duration, policy config.Retry) time.Duration {
	most := time.Duration(policy.MaxSeconds * float64(time.Second))
	if asked > 0 {
		return min(asked, most)
	}
	wait := time.Duration(policy.BaseSeconds * float64(time.Second) * float64(int(1)<<min(n-1, 16)))
	wait = min(wait, most)
	if wait <= 0 {
		return 0
	}
	return wait + rand.N(wait/4+1)
}
