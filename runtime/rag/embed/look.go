package embed

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// Look is where texts are embedded by settings, as far as that is known without a call
// that costs anything.
type Look struct {
	Host, Model string // empty: there is none
	Unpriced    bool   // its cost is not known
	Why         string // it cannot be asked; empty: as far as is known it can
	Try         string // what a person can do
	Says        string // the endpoint's own words; for people
}

// Look tells where texts are embedded. An endpoint that is named is asked nothing;
// Ollama is looked for as for a text.
func (s *Source) Look(ctx context.Context, set config.Embedding) Look {
	e, err := s.endpoint(ctx, set)
	if err != nil {
		return s.without(err)
	}
	return Look{Host: hostOf(e.baseURL), Model: e.model.ID, Unpriced: !e.model.Priced}
}

// without is a look that ended with an error.
func (*Source) without(err error) Look {
	l := Look{Why: err.Error()}
	var none *NoneError
	var failed *Error
	switch {
	case errors.As(err, &none):
		l.Why, l.Try = none.Why, none.Try
	case errors.As(err, &failed):
		l.Host, l.Model, l.Why, l.Try, l.Says = failed.Host, failed.Model, failed.What, failed.Try(), failed.Says
	}
	return l
}

// Reach is Look, and asks the endpoint for its list of models, which costs nothing. An
// endpoint that has no such list, and answers, may be all right.
func (s *Source) Reach(ctx context.Context, set config.Embedding) Look {
	e, err := s.endpoint(ctx, set)
	if err != nil {
		return s.without(err)
	}
	l := Look{Host: hostOf(e.baseURL), Model: e.model.ID, Unpriced: !e.model.Priced}
	j := &job{endpoint: e}
	if j.key, err = s.deps.Providers.Key(ctx, e.provider); err != nil {
		return s.without(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.wireOf(j.key).Base("", e.model.ID)+"/models", nil)
	if err != nil {
		return s.without(e.fail(KindModel, err, "embedding.base_url cannot be asked"))
	}
	body, err := j.exchange(ctx, req, maxList, nil)
	var api *llm.APIError
	switch {
	case errors.As(err, &api) && api.Type != wire.TypeMalformed && (api.Status == http.StatusNotFound || api.Status == http.StatusMethodNotAllowed):
		return l
	case err != nil:
		return s.without(err)
	}
	if names, err := modelsOf(body); err == nil && len(names) > 0 && !slices.Contains(names, e.model.ID) {
		return s.without(e.fail(KindModel, nil, "its list of models does not have it"))
	}
	return l
}
