package telemetry

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// The shapes of OTLP's ExportTraceServiceRequest in its JSON encoding: names in lower
// camel case, ids in hexadecimal, 64-bit numbers as texts, enumerations as numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []Attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []Span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
)

// Span is a span of OTLP.
type Span struct {
	TraceID      string      `json:"traceId"`
	SpanID       string      `json:"spanId"`
	ParentSpanID string      `json:"parentSpanId,omitempty"`
	Name         string      `json:"name"`
	Kind         int         `json:"kind"`
	Start        nanos       `json:"startTimeUnixNano"`
	End          nanos       `json:"endTimeUnixNano"`
	Attributes   []Attribute `json:"attributes,omitempty"`
	Links        []Link      `json:"links,omitempty"`
	Status       *Status     `json:"status,omitempty"`
}

// The kinds of span that there are here.
const (
	kindInternal = 1
	kindClient   = 3
)

// Link names another span that one goes back to.
type Link struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Attributes []Attribute `json:"attributes,omitempty"`
}

// Status says that what a span tells of has failed.
type Status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

const statusError = 2

// Attribute is a name with a value.
type Attribute struct {
	Key   string `json:"key"`
	Value Value  `json:"value"`
}

// Value is a text, a list of texts, a whole number or a fraction.
type Value struct{ v any }

// MarshalJSON names the type of the value.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v := v.v.(type) {
	case string:
		return json.Marshal(map[string]string{"stringValue": strings.ToValidUTF8(v, "\uFFFD")})
	case int64:
		return json.Marshal(map[string]string{"intValue": strconv.FormatInt(v, 10)})
	case float64:
		return json.Marshal(map[string]float64{"doubleValue": v})
	case []string:
		type list struct {
			Values []Value `json:"values"`
		}
		values := make([]Value, len(v))
		for i, s := range v {
			values[i] = Value{s}
		}
		return json.Marshal(map[string]list{"arrayValue": {values}})
	default:
		return []byte("{}"), nil
	}
}

// attributes collects those of a span. Empty ones are left out.
type attributes []Attribute

func (a *attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, Attribute{key, Value{value}})
	}
}

func (a *attributes) number(key string, value int64) {
	if value != 0 {
		*a = append(*a, Attribute{key, Value{value}})
	}
}

func (a *attributes) fraction(key string, value float64) {
	if value != 0 {
		*a = append(*a, Attribute{key, Value{value}})
	}
}

func (a *attributes) texts(key string, values ...string) {
	*a = append(*a, Attribute{key, Value{values}})
}

// nanos is a time in nanoseconds since 1970.
type nanos int64

func nanosOf(t time.Time) nanos { return nanos(t.UnixNano()) }

// MarshalJSON writes a text: JSON's numbers do not hold it.
func (n nanos) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(n), 10) + `"`), nil
}

// version of the package's spans.
const scopeName = "github.com/rye-mcp/rye-mcp"

// response is OTLP's ExportTraceServiceResponse.
type response struct {
	PartialSuccess struct {
		RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or a text with one
		ErrorMessage  string          `json:"errorMessage"`
	} `json:"partialSuccess"`
}
