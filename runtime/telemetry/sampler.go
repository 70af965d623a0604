package telemetry

import (
	"math"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// sampler says which traces are sent. The decision of a caller about its own trace holds
// for what is below it, unless parent is false.
type sampler struct {
	parent bool
	ratio  float64 // of the others
}

func samplerFrom(getenv func(string) string) (s sampler, err error) {
	name := getenv("OTEL_TRACES_SAMPLER")
	if name == "" {
		name = "parentbased_always_on"
	}
	base, parent := strings.CutPrefix(name, "parentbased_")
	s.parent = parent
	switch base {
	case "always_on":
		s.ratio = 1
	case "always_off":
	case "traceidratio":
		s.ratio = 1
		if arg := getenv("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
			s.ratio, err = strconv.ParseFloat(arg, 64)
		}
		if err != nil || !(s.ratio >= 0 && s.ratio <= 1) {
			return s, unusable("OTEL_TRACES_SAMPLER_ARG is %q, and must be a number from 0 to 1", getenv("OTEL_TRACES_SAMPLER_ARG"))
		}
	default:
		return s, unusable("OTEL_TRACES_SAMPLER is %q, and always_on, always_off and traceidratio can be used, with parentbased_ before them", name)
	}
	return s, nil
}

// takes reports whether the trace of an id is sent, with the span that it was started in.
// The same ids are taken by all programs with one ratio.
func (s sampler) takes(trace string, caller thread.Traceparent) bool {
	if s.parent && caller.Trace != "" {
		return caller.Sampled
	}
	low, err := strconv.ParseUint(trace[len(trace)/2:], 16, 64)
	return s.ratio == 1 || err == nil && float64(low>>1) < s.ratio*math.MaxInt64
}
