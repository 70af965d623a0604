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

// readLimits takes the limits apart. What a call may raise a root to follows from
// the settings without the project.
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
