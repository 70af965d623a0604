package loop

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

// TestShippedClassification: what the shipped rules make of the failures that the
// vendors document, in their words.
func TestShippedClassification(t *testing.T) {
	t.Parallel()
	rules, _, err := config.New(resolve.Roots{System: system.FS()}).Read().ErrorRules()
	if err != nil {
		t.Fatal(err)
	}
	type failed = llm.APIError
	for name, c := range map[string]struct {
		err   failed
		want  string
		retry bool
	}{
		"no connection":          {failed{Type: wire.TypeConnection}, config.CategoryTransient, true},
		"cut in mid-stream":      {failed{Type: wire.TypeConnection, MidStream: true}, config.CategoryTransient, true},
		"silence":                {failed{Type: wire.TypeStalled, Message: "timed out: no byte for 2m0s"}, config.CategoryTransient, true},
		"answer without sense":   {failed{Status: 200, Type: wire.TypeMalformed}, config.CategoryTransient, true},
		"answer in one piece":    {failed{Status: 200, Type: wire.TypeWhole, Message: "timeout, quota exceeded"}, config.CategoryPermanent, false},
		"no content":             {failed{Status: 204, Type: wire.TypeMalformed}, config.CategoryTransient, true},
		"server error":           {failed{Status: 500}, config.CategoryTransient, true},
		"bad gateway":            {failed{Status: 502, Message: `the answer is a web page titled "Bad Gateway"`}, config.CategoryTransient, true},
		"request timeout":        {failed{Status: 408}, config.CategoryTransient, true},
		"conflict":               {failed{Status: 409}, config.CategoryTransient, true},
		"Cloudflare":             {failed{Status: 524}, config.CategoryTransient, true},
		"overloaded":             {failed{Status: 529, Type: "overloaded_error", MidStream: true}, config.CategoryTransient, true},
		"engine overloaded":      {failed{Status: 503, Message: "The engine is currently overloaded, please try again later"}, config.CategoryTransient, true},
		"too many requests":      {failed{Status: 429, Type: "rate_limit_error"}, config.CategoryRateLimited, true},
		"OpenAI's rate limit":    {failed{Status: 429, Type: "tokens", Code: "rate_limit_exceeded", Message: "Rate limit reached for gpt on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 6s. Visit our billing page"}, config.CategoryRateLimited, true},
		"Google's rate limit":    {failed{Status: 429, Type: "RESOURCE_EXHAUSTED", Message: "You exceeded your current quota, please check your plan and billing details. Please retry in 41.5s."}, config.CategoryRateLimited, true},
		"throttled by AWS":       {failed{Status: 400, Type: "ThrottlingException", Message: "Too many requests, please wait"}, config.CategoryRateLimited, true},
		"larger than the limit":  {failed{Status: 429, Type: "tokens", Code: "rate_limit_exceeded", Message: "Request too large for gpt on tokens per min (TPM): Limit 30000, Requested 30601. Please try again in 1s"}, config.CategoryContext, false},
		"quota behind a 429":     {failed{Status: 429, Code: "insufficient_quota"}, config.CategoryQuota, false},
		"quota in words":         {failed{Status: 429, Message: "You exceeded your current quota, please check your plan."}, config.CategoryQuota, false},
		"no credit":              {failed{Status: 400, Message: "Your credit balance is too low"}, config.CategoryQuota, false},
		"payment required":       {failed{Status: 402}, config.CategoryQuota, false},
		"wrong key":              {failed{Status: 401}, config.CategoryAuth, false},
		"wrong key in stream":    {failed{Status: 200, Type: "authentication_error"}, config.CategoryAuth, false},
		"forbidden":              {failed{Status: 403}, config.CategoryAuth, false},
		"OpenAI: too long":       {failed{Status: 400, Code: "context_length_exceeded"}, config.CategoryContext, false},
		"OpenAI: too long again": {failed{Status: 400, Message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens."}, config.CategoryContext, false},
		"OpenAI: window":         {failed{Status: 400, Message: "Your input exceeds the context window of this model."}, config.CategoryContext, false},
		"Anthropic: too long":    {failed{Status: 400, Message: "prompt is too long: 213462 tokens > 200000 maximum"}, config.CategoryContext, false},
		"Anthropic: with answer": {failed{Status: 400, Message: "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000"}, config.CategoryContext, false},
		"Anthropic: too large":   {failed{Status: 413, Type: "request_too_large"}, config.CategoryContext, false},
		"Google: too long":       {failed{Status: 400, Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}, config.CategoryContext, false},
		"llama.cpp: too long":    {failed{Status: 400, Type: "exceed_context_size_error", Message: "the request exceeds the available context size"}, config.CategoryContext, false},
		"filtered":               {failed{Status: 400, Code: "content_filter", Message: "The response was filtered"}, config.CategoryRefusal, false},
		"refusal":                {failed{Status: 200, Type: typeRefusal}, config.CategoryRefusal, false},
		"empty answer":           {failed{Status: 200, Type: typeEmpty}, config.CategoryEmpty, false},
		"failed answer":          {failed{Status: 200, Type: typeFailed, Code: "network_error"}, config.CategoryTransient, true},
		"bad request":            {failed{Status: 400, Message: "timeout must be positive"}, config.CategoryPermanent, false},
		"bad request in stream":  {failed{Status: 400, MidStream: true}, config.CategoryPermanent, false},
		"unknown model":          {failed{Status: 404, Type: "not_found_error"}, config.CategoryPermanent, false},
		"not processable":        {failed{Status: 422}, config.CategoryPermanent, false},
		"redirect":               {failed{Status: 302}, config.CategoryPermanent, false},
	} {
		r := &run{}
		got := rules.Classify(r.failureData(&failure{api: &c.err, attempt: 1}))
		if got.Category != c.want || got.Retryable != c.retry {
			t.Errorf("%s: %s by %s, retry %v; want %s", name, got.Category, got.ID, got.Retryable, c.want)
		}
	}
}

// TestFailureData: conditions see all of a failure.
func TestFailureData(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	r := &run{}
	r.model.choice.Provider, r.model.choice.Model.ID = "fake", "small"
	api := &llm.APIError{Status: 429, Type: "t", Code: "c", Message: "m", Header: http.Header{"X-Team": {"a", "b"}}}
	data := r.failureData(&failure{api: api, attempt: 2})
	for _, condition := range []string{
		"{path: status_code, op: eq, value: 429}", "{path: error.type, op: eq, value: t}", "{path: error.code, op: eq, value: c}",
		"{path: error.message, op: eq, value: m}", "{path: headers.x-team, op: eq, value: 'a, b'}", "{path: model, op: eq, value: small}",
		"{path: provider, op: eq, value: fake}", "{path: attempt, op: gte, value: 2}", "{path: cancelled, op: eq, value: false}",
	} {
		h := newHouse(t)
		h.write(".ai/config/agent/error_classification.yaml", "patterns: [{id: mine, category: quota, match: "+condition+"}]\n")
		rules, warnings, err := config.New(h.roots()).Read().ErrorRules()
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		if got := rules.Classify(data); got.ID != "mine" {
			t.Errorf("%s does not hold: %s", strings.TrimSpace(condition), got.ID)
		}
	}
}
