package embed

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// bytesPerToken is how many bytes of a text are taken for a token. English has four;
	// an endpoint refuses a text that this is too much for, and gets less of it.
	bytesPerToken = 3
	// window is how many tokens of a text a model takes of which that is not known.
	window = 8192
	// batchBytes is how much text one request carries: OpenAI takes 300 000 tokens, and
	// a model on this machine should be done in seconds.
	batchBytes = 96 << 10
	// maxHalvings is how often a text that is refused for its length is halved.
	maxHalvings = 4
)

// job is one call of [Client.Embed].
type job struct {
	endpoint

	purse  tool.Purse
	key    string
	keyed  bool   // the key was asked for
	before answer // a vector of the batches before, and their model
}

// run embeds texts, batch by batch.
func (j *job) run(ctx context.Context, texts []string) (Vectors, error) {
	out := Vectors{Unpriced: !j.model.Priced}
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := j.next(texts)
		batch := make([]string, n)
		for i, text := range texts[:n] {
			var cut bool
			if batch[i], cut = j.fitted(text); cut {
				out.Cut++
			}
		}
		part, err := j.batchOf(ctx, batch, maxHalvings)
		out.add(part)
		if err != nil {
			return out, err
		}
		vectors = append(vectors, part.Vectors...)
		texts = texts[n:]
	}
	out.Model, out.Dimension, out.Vectors = j.before.model, len(vectors[0]), vectors
	return out, nil
}

// next is how many of the texts go into one request.
func (j *job) next(texts []string) int {
	n, size := 0, 0
	for n < len(texts) && n < j.batch {
		size += min(len(texts[n]), j.maxText())
		if n > 0 && size > batchBytes {
			break
		}
		n++
	}
	return n
}

// maxText is how many bytes of a text the model takes, as far as that is known.
func (j *job) maxText() int {
	tokens := j.model.ContextWindow
	if tokens <= 0 {
		tokens = window
	}
	return tokens * bytesPerToken
}

// fitted is a text that the model can be given. Endpoints refuse an empty one.
func (j *job) fitted(text string) (fits string, cut bool) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return ".", false
	}
	short := item.Begin(text, j.maxText())
	return short, len(short) < len(text)
}

// batchOf embeds the texts of one request. Texts that the endpoint finds too long are
// asked for in halves: fewer texts, and at last half of a text.
func (j *job) batchOf(ctx context.Context, texts []string, halvings int) (Vectors, error) {
	out, err := j.ask(ctx, texts)
	if err == nil || halvings == 0 || !tooLong(err) {
		return out, err
	}
	if len(texts) > 1 {
		return j.halves(ctx, out, texts, halvings)
	}
	half, err := j.batchOf(ctx, []string{item.Begin(texts[0], (len(texts[0])+1)/2)}, halvings-1)
	half.Cut = 1
	return half, err
}

// halves embeds one half of the texts after the other.
func (j *job) halves(ctx context.Context, out Vectors, texts []string, halvings int) (Vectors, error) {
	var vectors [][]float32
	for _, half := range [][]string{texts[:len(texts)/2], texts[len(texts)/2:]} {
		part, err := j.batchOf(ctx, half, halvings)
		out.add(part)
		if err != nil {
			return out, err
		}
		vectors = append(vectors, part.Vectors...)
	}
	out.Vectors = vectors
	return out, nil
}

// tooLong reports whether an endpoint refuses the length of what it was given. Sources:
// the error codes of OpenAI, the messages of vLLM, llama.cpp's server and Ollama.
func tooLong(err error) bool {
	var api *llm.APIError
	if !errors.As(err, &api) || api.Status != http.StatusBadRequest && api.Status != http.StatusRequestEntityTooLarge {
		return false
	}
	if api.Status == http.StatusRequestEntityTooLarge || api.Code == "context_length_exceeded" {
		return true
	}
	says := strings.ToLower(api.Message)
	for _, words := range []string{"context length", "context size", "maximum context", "too long", "too large", "input length", "max_tokens_per_request", "maximum allowed"} {
		if strings.Contains(says, words) {
			return true
		}
	}
	return false
}
