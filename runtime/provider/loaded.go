package provider

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// maxLoaded bounds what is read of a list of models.
const maxLoaded = 1 << 20

// Loaded says how long the context is, in tokens, that a provider on this machine has given
// the models it has loaded, by their ids. Ollama tells that, others do not. It waits for
// 200 ms at most. Source: "List running models" in Ollama's API reference.
func (r *Registry) Loaded(ctx context.Context, p config.Provider) map[string]int {
	var list struct {
		Models []struct {
			Name    string `json:"name"`
			Context int    `json:"context_length"`
		} `json:"models"`
	}
	probe(ctx, r.BaseURL(p), "../api/ps", func(body io.Reader) {
		_ = json.NewDecoder(io.LimitReader(body, maxLoaded)).Decode(&list) // an answer that cannot be read tells nothing
	})
	loaded := map[string]int{}
	for _, m := range list.Models {
		if m.Context > 0 {
			loaded[m.Name], loaded[strings.TrimSuffix(m.Name, ":latest")] = m.Context, m.Context
		}
	}
	return loaded
}
