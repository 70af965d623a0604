package embed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

const (
	// ollamaTime is how long Ollama may take to say which models it has. It is on this
	// machine, and does not load one for that.
	ollamaTime = time.Second
	// ollamaAgain is when it is looked for again where it was not found: somebody may
	// have started it while a server runs.
	ollamaAgain = time.Minute
	// maxList bounds its list of models.
	maxList = 1 << 20
)

// embedders are families of models for embeddings in Ollama's library, the one that is
// taken first at the head.
var embedders = [...]string{
	"qwen3-embedding", "embeddinggemma", "bge-m3", "mxbai-embed-large", "snowflake-arctic-embed2", "snowflake-arctic-embed",
	"nomic-embed-text-v2-moe", "nomic-embed-text", "granite-embedding", "paraphrase-multilingual", "bge-large", "all-minilm",
}

// ollama remembers which models Ollama has.
type ollama struct {
	mu     sync.Mutex
	models []string
	failed *NoneError
	until  time.Time // failed counts until then
}

// find is the model of Ollama that settings mean. It looks for Ollama once in the life
// of the process, or once a minute while it is not there.
func (o *ollama) find(ctx context.Context, s *Source, model string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.models == nil && (o.failed == nil || !s.deps.Now().Before(o.until)) {
		models, err := s.listed(ctx)
		if ctx.Err() != nil {
			return "", fmt.Errorf("embeddings: %w", context.Cause(ctx))
		}
		o.models, o.failed = models, nil
		if err != nil {
			o.failed = &NoneError{
				Why: "agent/memory.yaml names no embedding.base_url, and no Ollama answers at " + hostOf(s.deps.OllamaURL),
				Try: "set embedding.base_url and embedding.api_key_env in agent/memory.yaml, or start Ollama",
			}
			o.until = s.deps.Now().Add(ollamaAgain)
		}
	}
	if o.failed != nil {
		return "", o.failed
	}
	return chosen(o.models, model)
}

// forget has Ollama be looked for again.
func (o *ollama) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.models = nil
}

// chosen is the model of a list that a name means. In place of the default, which Ollama
// has not got, it is the first of the families above, and then the first of another
// name that says what it is for.
func chosen(models []string, name string) (string, error) {
	for _, m := range models {
		if m == name || strings.TrimSuffix(m, ":latest") == name {
			return m, nil
		}
	}
	if name != config.DefaultEmbedding {
		return "", &NoneError{Why: "Ollama has no model " + name, Try: "ollama pull " + name}
	}
	for _, family := range embedders {
		for _, m := range models {
			if before, _, _ := strings.Cut(m, ":"); before == family {
				return m, nil
			}
		}
	}
	for _, m := range models {
		if strings.Contains(m, "embed") {
			return m, nil
		}
	}
	return "", &NoneError{Why: "Ollama has no model for embeddings", Try: "ollama pull embeddinggemma"}
}

// listed are the models that Ollama has, sorted by name; never nil without an error.
func (s *Source) listed(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, min(ollamaTime, s.deps.Timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.deps.OllamaURL+"/models", nil)
	if err != nil {
		return nil, err
	}
	// The way leads to this machine only; a proxy and a redirect have no place in it.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, cmp.Or(err, fmt.Errorf("HTTP %d", resp.StatusCode))
	}
	return modelsOf(body)
}

// modelsOf are the names of a list of models, sorted.
func modelsOf(body []byte) ([]string, error) {
	var list struct {
		Data []struct {
			ID json.RawMessage `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	names := []string{}
	for _, m := range list.Data {
		if name := modelName(m.ID); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
