package config

import (
	"fmt"
	"maps"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// writtenLimits is "limits" in resilience.yaml, where bounds for calls and days
// stand beside the limits of a thread.
type writtenLimits struct {
	Limits struct {
		Own         item.LimitSet `yaml:",inline"`
		MaxOverride item.LimitSet `yaml:"max_override"`
		DailySpend  *float64      `yaml:"daily_spend"`
	} `yaml:"limits"`
}

// readLimits takes the limits apart. The bound on what a call may raise a root to
// follows from the settings without the project.
func (r *Resilience) readLimits(s *settings) error {
	var all, own writtenLimits
	if err := s.decode(&all); err != nil {
		return err
	}
	if err := s.ofTheUser().decode(&own); err != nil {
		return fmt.Errorf("without the project: %w", err)
	}
	r.Limits, r.DailySpend = all.Limits.Own, own.Limits.DailySpend
	r.MaxOverride = item.LimitSet{}
	maps.Copy(r.MaxOverride, own.Limits.Own)
	maps.Copy(r.MaxOverride, own.Limits.MaxOverride)
	return nil
}

// ofTheUser are the settings without the project's.
func (s *settings) ofTheUser() *settings { return &settings{layers: s.layers[:s.own]} }

const (
	limitsKey   = "limits"
	defaultsKey = "defaults" // below limits, where the original system has them
	retryKey    = "retry"
	// maxPrefix may stand in front of the name of a limit.
	maxPrefix = "max_"
	// attempts are the calls in a row, of which retries are all but the first.
	attempts = "max_attempts"
	retries  = "max_retries"
)

// canonicalResilience gives every value its one name, so that all spellings merge.
func canonicalResilience(l *layer) error {
	l.spellings = otherSpellings
	if retry, ok := l.values[retryKey].(map[string]any); ok && retry[retries] != nil {
		if retry[attempts] != nil {
			return l.errorAt([]string{retryKey, retries}, "the same is given as %s too, which counts the first call", attempts)
		}
		if n, whole := retry[retries].(int); whole {
			retry[attempts] = n + 1
		}
		delete(retry, retries)
	}
	limits, ok := l.values[limitsKey].(map[string]any)
	if !ok {
		return nil
	}
	for _, name := range item.LimitNames() {
		if err := l.canonicalLimit(limits, name); err != nil {
			return err
		}
	}
	delete(limits, defaultsKey)
	return nil
}

// canonicalLimit keeps the value of a limit under its name, however it is spelled.
func (l layer) canonicalLimit(limits map[string]any, name string) error {
	defaults, _ := limits[defaultsKey].(map[string]any)
	short, given := limits[name]
	for _, at := range otherSpellings([]string{limitsKey, name}) {
		from, key := limits, at[len(at)-1]
		if len(at) == 3 {
			from = defaults
		}
		value, there := from[key]
		if !there {
			continue
		}
		if given {
			return l.errorAt(at, "the limit is given twice, as %s too", name)
		}
		short, given = value, true
		if len(at) == 2 {
			delete(limits, key)
		}
	}
	if given {
		limits[name] = short
	}
	return nil
}

// otherSpellings are the other places in resilience.yaml where the value at a path
// of keys may stand.
func otherSpellings(at []string) [][]string {
	switch {
	case len(at) != 2:
		return nil
	case at[0] == retryKey && at[1] == attempts:
		return [][]string{{retryKey, retries}}
	case at[0] == limitsKey:
		return [][]string{
			{limitsKey, maxPrefix + at[1]}, {limitsKey, defaultsKey, at[1]}, {limitsKey, defaultsKey, maxPrefix + at[1]},
		}
	}
	return nil
}
