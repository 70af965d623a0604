package provider

import (
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Embeds is what is known of the model that an endpoint embeds with: the settings'
// price, nothing on this machine without a key, else what the catalogue says of the
// vendor whose address it is. Model is asked for in place of that of the settings,
// where it is not empty.
func (s *Source) Embeds(e config.Embedding, model string) (llm.Model, error) {
	if model == "" {
		model = e.Model
	}
	known, err := s.catalog()
	if err != nil {
		return llm.Model{}, err
	}
	found, _ := known.Lookup(known.At(e.BaseURL), model, s.today())
	found.ID = model
	switch {
	case e.Price != nil:
		micros, err := perMillion(*e.Price)
		if err != nil {
			return found, fmt.Errorf("embedding.price of memory.yaml: %w", err)
		}
		found.Price, found.Priced = llm.Price{Input: micros}, true
	case e.Endpoint().Local:
		found.Price, found.Priced = llm.Price{}, true
	}
	return found, nil
}

// Lacks reports that what is described as a provider needs a key that this process does
// not have. Whether a command gives it is another matter.
func (s *Source) Lacks(p config.Provider) bool {
	return p.APIKeyEnv != "" && !s.inVariable(p) && !givenByCommand(p)
}
