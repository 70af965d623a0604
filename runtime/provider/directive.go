package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// atProvider follows a directive that names its provider, and that one only. A
// fallback may name another.
func (r *Registry) atProvider(ctx context.Context, w Want) (Choice, error) {
	p, _, err := r.config.Provider(w.Provider)
	if err != nil {
		return Choice{}, err
	}
	if !r.canBeNamed(p) || !r.isThere(ctx, p) {
		return Choice{}, r.missing(p)
	}
	if w.ID == "" {
		return r.tierOf(p, w.Tier)
	}
	id := strings.TrimPrefix(w.ID, p.Name+"/")
	if model, ok := tierModel(p, id); ok {
		id = model
	}
	known, err := r.mayHave(p, id)
	if err != nil {
		return Choice{}, err
	}
	if known {
		return r.choice(p, id)
	}
	return r.instead(ctx, w, &UnknownModelError{Model: id, Provider: p.Name, Only: true, Tiers: tierNames(p)})
}

// mayHave reports whether a provider has a model as far as anybody knows. Nobody
// knows of one on this machine, or one of which neither catalogue nor file lists a
// model.
func (r *Registry) mayHave(p config.Provider, id string) (bool, error) {
	known, err := r.has(p, id)
	if known || err != nil || p.Local || p.API == config.APIScripted {
		return err == nil, err
	}
	models, err := r.catalog()
	return err == nil && len(p.Models) == 0 && !models.Knows(p.Name), err
}

// byDirective follows the model id of a directive: "provider/model" or an id alone.
func (r *Registry) byDirective(ctx context.Context, w Want) (Choice, error) {
	choice, err := r.byID(ctx, w.ID)
	if err == nil || !unavailable(err) {
		return choice, err
	}
	if p, _, splitErr := r.split(w.ID); splitErr == nil && p != nil {
		return Choice{}, err // it names its provider
	}
	return r.instead(ctx, w, err)
}

// instead is what a directive names beside a model that cannot be had: its fallback,
// else its tier.
func (r *Registry) instead(ctx context.Context, w Want, why error) (Choice, error) {
	warn := func(choice Choice, by string) Choice {
		choice.Warnings = append(choice.Warnings, fmt.Sprintf("the directive asks for the model %s: %v; using %s (%s) instead",
			w.ID, why, choice.Ref(), by))
		return choice
	}
	switch {
	case w.Fallback != "":
		choice, err := r.named(ctx, w.Fallback)
		if err != nil {
			return Choice{}, fmt.Errorf("the directive asks for the model %s: %w; its fallback %s: %w", w.ID, why, w.Fallback, err)
		}
		return warn(choice, "its fallback"), nil
	case w.Tier != "" && w.Provider == "":
		choice, err := r.byTier(ctx, w.Tier)
		if err != nil {
			return Choice{}, err
		}
		return warn(choice, "tier "+w.Tier), nil
	}
	return Choice{}, fmt.Errorf("the directive asks for the model %s: %w", w.ID, why)
}

func unavailable(err error) bool {
	var none *NoProviderError
	var unknown *UnknownModelError
	return errors.As(err, &none) || errors.As(err, &unknown)
}
