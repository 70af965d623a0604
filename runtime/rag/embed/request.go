package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/openai"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

const (
	// maxAttempts, baseWait and maxWait are about one request: with waits of half a
	// second, one, two and what an endpoint asks for.
	maxAttempts = 4
	baseWait    = 500 * time.Millisecond
	maxWait     = 30 * time.Second
	// maxBody bounds an answer; maxNumber is a number of a list with its comma and
	// spaces, of any precision.
	maxBody   = 64 << 20
	maxNumber = 32
	// textTokens is more than the marks that a model puts around a text.
	textTokens = 16
)

// ask makes one request, again where that can help, and checks its answer.
func (j *job) ask(ctx context.Context, texts []string) (Vectors, error) {
	var out Vectors
	for attempt := 1; ; attempt++ {
		a, spent, err := j.paid(ctx, texts)
		out.add(spent)
		if err == nil {
			out.Vectors = a.vectors
			return out, j.same(a)
		}
		wait, again := j.again(ctx, err, attempt)
		if !again {
			return out, err
		}
		if err := j.source.deps.Pause(ctx, wait); err != nil {
			return out, fmt.Errorf("embeddings: %w", err)
		}
	}
}

// again says whether a failed request is made once more, and after how long. One that
// an endpoint wants to be left alone for longer than maxWait is not.
func (j *job) again(ctx context.Context, err error, attempt int) (time.Duration, bool) {
	var failed *Error
	if attempt >= maxAttempts || ctx.Err() != nil || !errors.As(err, &failed) {
		return 0, false
	}
	switch failed.Kind {
	case KindKey:
		return 0, j.renewKey(ctx)
	case KindLimit, KindUnreachable, KindSilent:
		if errors.Is(err, syscall.ECONNREFUSED) { // nobody is there to come back to
			return 0, false
		}
	default:
		return 0, false
	}
	most := min(float64(baseWait)*math.Exp2(float64(attempt-1)), float64(maxWait))
	wait := time.Duration(most/2 + j.source.deps.Draw()*most/2)
	var api *llm.APIError
	if errors.As(err, &api) && api.Header != nil {
		wait = max(wait, llm.Asked(api.Header, llm.RetryAfter, j.source.deps.Now()))
	}
	return wait, wait <= maxWait
}

// renewKey asks for another key in place of one that was refused.
func (j *job) renewKey(ctx context.Context) bool {
	key, other := j.source.deps.Providers.KeyAgain(ctx, j.provider, j.key)
	if other {
		j.key = key
	}
	return other
}

// paid makes one request with money that is held for it. A request that was sent
// and never answered counts as if it was billed.
func (j *job) paid(ctx context.Context, texts []string) (answer, Vectors, error) {
	most := mostTokens(texts)
	settle := func(thread.Micros) error { return nil }
	if worst := j.costOf(most); j.purse != nil && worst > 0 {
		var err error
		if settle, err = j.purse.Hold(ctx, worst); err != nil {
			return answer{}, Vectors{}, err
		}
	}
	a, sent, err := j.send(ctx, texts)
	spent := Vectors{Tokens: billed(a, sent, err, most)}
	spent.Cost = j.costOf(spent.Tokens)
	if settled := settle(spent.Cost); settled != nil {
		return answer{}, spent, settled
	}
	return a, spent, err
}

// billed are the tokens that a request counts for. More than the texts can have is
// not believed, and where nothing is said it is the most.
func billed(a answer, sent bool, err error, most int64) int64 {
	var api *llm.APIError
	switch {
	case err != nil && (!sent || errors.As(err, &api) && api.Status != 0 && api.Type != wire.TypeMalformed):
		return 0
	case err != nil, !a.counted:
		return most
	}
	return min(a.tokens, most)
}

// mostTokens is more than texts can have: no token is shorter than a byte.
func mostTokens(texts []string) int64 {
	var n int64
	for _, text := range texts {
		n = thread.Sum(n, int64(len(text)), textTokens)
	}
	return n
}

func (j *job) costOf(tokens int64) thread.Micros {
	return j.model.Price.Cost(llm.Usage{InputTokens: tokens})
}

// send makes one request.
func (j *job) send(ctx context.Context, texts []string) (a answer, sent bool, err error) {
	if !j.keyed {
		if j.key, err = j.source.deps.Providers.Key(ctx, j.provider); err != nil {
			return answer{}, false, err
		}
		j.keyed = true
	}
	req, err := j.request(texts)
	if err != nil {
		return answer{}, false, err
	}
	var left atomic.Bool
	body, err := j.exchange(ctx, req, maxOf(len(texts)), func(int64) { left.Store(true) })
	if err != nil {
		return answer{}, left.Load(), err
	}
	if a, err = parse(body, len(texts)); err != nil {
		return a, true, j.fail(KindAnswer, err, "%v", err)
	}
	return a, true, nil
}

func maxOf(texts int) int64 { return min(maxBody, int64(texts)*maxDimension*maxNumber+64<<10) }

// wireOf is how an endpoint is reached with a key.
func (e endpoint) wireOf(key string) wire.Config {
	return wire.Config{
		BaseURL: e.baseURL, APIKey: key, KeyHeader: e.provider.APIKeyHeader, HTTPClient: e.source.http(),
		StallTimeout: min(silentTime, e.source.deps.Timeout), FirstTimeout: e.source.deps.Timeout,
	}
}

// request is the request for texts. Base64 is a quarter of the bytes; OpenAI surely
// has it.
func (j *job) request(texts []string) (*http.Request, error) {
	said := struct {
		Model      string   `json:"model"`
		Input      []string `json:"input"`
		Dimensions int      `json:"dimensions,omitempty"`
		Encoding   string   `json:"encoding_format,omitempty"`
	}{Model: j.model.ID, Input: texts, Dimensions: j.asked}
	if openai.Official(j.baseURL) {
		said.Encoding = "base64"
	}
	body, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, j.wireOf(j.key).Base("", j.model.ID)+"/embeddings", bytes.NewReader(body)) //nolint:noctx // exchange gives it one
	if err != nil {
		return nil, j.fail(KindModel, err, "embedding.base_url cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// exchange sends a request with the key and returns the body of a good answer, which has
// at most so many bytes.
func (j *job) exchange(ctx context.Context, req *http.Request, most int64, sent func(bytes int64)) ([]byte, error) {
	cfg := j.wireOf(j.key)
	if key := cfg.VendorKey(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Accept", "application/json")
	callCtx, call := cfg.Begin(ctx)
	defer call.End()
	call.Whole, call.Sent = true, sent
	resp, err := call.Do(req.WithContext(callCtx))
	if err != nil {
		return nil, j.failed(call.Fail(ctx, err))
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, j.failed(call.Fail(ctx, err))
	}
	if int64(len(body)) > most {
		return nil, j.fail(KindAnswer, nil, "the answer is longer than %d MiB, which no vectors for so few texts are", most>>20)
	}
	return body, nil
}

// failed is what became of a call, unless it was called off.
func (j *job) failed(err error) error {
	var api *llm.APIError
	if errors.As(err, &api) {
		return j.refused(api)
	}
	return err
}

// same holds an answer against the settings and against the answers before: vectors of
// two models, or of two dimensions, must not come to lie beside each other.
func (j *job) same(a answer) error {
	if a.model == "" {
		a.model = j.model.ID
	}
	has := len(a.vectors[0])
	switch {
	case j.asked > 0 && has != j.asked:
		return j.fail(KindChanged, nil, "it was asked for %d dimensions and answers with %d; set embedding.dimensions to 0 or to what the model has", j.asked, has)
	case j.before.model != "" && j.before.model != a.model:
		return j.fail(KindChanged, nil, "it answers with model %s and a moment ago with %s", item.Shown(a.model), item.Shown(j.before.model))
	}
	if before, same := j.source.dimension(fmt.Sprint(j.baseURL, " ", a.model, " ", j.asked), has); !same {
		return j.fail(KindChanged, nil, "it answers with %d dimensions and before with %d", has, before)
	}
	j.before = answer{model: a.model}
	return nil
}
