package loop

import (
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  llm.APIError
		want class
	}{
		"no connection":         {llm.APIError{Type: "connection_error"}, class{categoryTransient, true}},
		"cut in mid-stream":     {llm.APIError{Type: "connection_error", MidStream: true}, class{categoryTransient, true}},
		"answer without sense":  {llm.APIError{Status: 200, Type: "malformed_answer"}, class{categoryTransient, true}},
		"server error":          {llm.APIError{Status: 500}, class{categoryTransient, true}},
		"overloaded":            {llm.APIError{Status: 529, Type: "overloaded_error", MidStream: true}, class{categoryTransient, true}},
		"too many requests":     {llm.APIError{Status: 429, Type: "rate_limit_error"}, class{categoryRateLimited, true}},
		"quota behind a 429":    {llm.APIError{Status: 429, Code: "insufficient_quota"}, class{category: categoryQuota}},
		"no credit":             {llm.APIError{Status: 400, Message: "Your credit balance is too low"}, class{category: categoryQuota}},
		"payment required":      {llm.APIError{Status: 402}, class{category: categoryQuota}},
		"wrong key":             {llm.APIError{Status: 401}, class{category: categoryAuth}},
		"forbidden":             {llm.APIError{Status: 403}, class{category: categoryAuth}},
		"too long":              {llm.APIError{Status: 400, Code: "context_length_exceeded"}, class{category: categoryTooLong}},
		"bad request":           {llm.APIError{Status: 400}, class{category: categoryPermanent}},
		"bad request in stream": {llm.APIError{Status: 400, MidStream: true}, class{category: categoryPermanent}},
		"redirect":              {llm.APIError{Status: 302}, class{category: categoryPermanent}},
	} {
		if got := classify(&c.err); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	policy := config.Retry{BaseSeconds: 2, MaxSeconds: 10}
	for _, c := range []struct {
		n     int
		asked time.Duration
		least time.Duration // at most a quarter is added, but to what was asked
	}{
		{1, 0, 2 * time.Second}, {2, 0, 4 * time.Second}, {3, 0, 8 * time.Second}, {4, 0, 10 * time.Second}, {1000, 0, 10 * time.Second},
		{1, 3 * time.Second, 3 * time.Second}, {1, time.Hour, 10 * time.Second},
	} {
		most := c.least + c.least/4
		if c.asked > 0 {
			most = c.least
		}
		if got := backoff(c.n, c.asked, policy); got < c.least || got > most {
			t.Errorf("attempt %d, asked %s: %s, want %s to %s", c.n, c.asked, got, c.least, most)
		}
	}
	if got := backoff(1, 0, config.Retry{}); got != 0 {
		t.Errorf("without a policy: %s", got)
	}
}
