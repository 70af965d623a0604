package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Offer is what a worker has for the threads of its projects, as its settings are now.
type Offer struct {
	// Settings names what of the settings of each of its projects its user has accepted, in
	// their order; none are known of a worker of an older version.
	Settings []string
	// Able are the model providers that it can use, by project: it has their keys, or they need
	// none; those on its machine answer.
	Able map[string][]string
}

// Equal reports whether two offers are the same.
func (o Offer) Equal(other Offer) bool {
	return slices.Equal(o.Settings, other.Settings) && maps.EqualFunc(o.Able, other.Able, slices.Equal)
}

// Providers are those that can be used for any of the projects, sorted.
func (o Offer) Providers() []string {
	all := []string{}
	for _, able := range o.Able {
		all = append(all, able...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// able is what the column of that name gets.
func (o Offer) able() string {
	text, err := json.Marshal(o.Able)
	if err != nil || o.Able == nil {
		return "{}"
	}
	return string(text)
}

// Tell says what the worker has now.
func (l *Lease) Tell(ctx context.Context, o Offer) error {
	ctx, stop := context.WithTimeout(ctx, l.fleet.ttl())
	defer stop()
	_, err := l.fleet.Pool.Exec(ctx, `UPDATE rye.workers SET settings = $2, able = $3, providers = $4 WHERE incarnation = $1`,
		string(l.Incarnation), orEmpty(o.Settings), o.able(), o.Providers())
	if err != nil {
		return fmt.Errorf("say what worker %q has: %w", l.Name, err)
	}
	return nil
}
