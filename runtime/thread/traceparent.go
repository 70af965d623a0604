package thread

import "strings"

// Traceparent is the span of another program that a thread was started in, as W3C Trace
// Context writes it: version, trace, span and flags in hexadecimal. [Meta.TraceID] is
// such a text where somebody gave one.
type Traceparent struct {
	Trace   string // 32 digits, not all 0
	Span    string // 16 digits, not all 0
	Sampled bool   // that span is recorded
}

// The length of a traceparent of version 00, and of its parts.
const (
	traceparentLen = 55
	traceDigits    = 32
	spanDigits     = 16
)

// ParseTraceparent reads a traceparent. One that is not well-formed is as good as none.
// One of a later version may go on behind the flags.
func ParseTraceparent(text string) (p Traceparent, ok bool) {
	if len(text) < traceparentLen || len(text) > traceparentLen && (text[:2] == "00" || text[traceparentLen] != '-') {
		return p, false
	}
	parts := strings.Split(text[:traceparentLen], "-")
	if len(parts) != 4 || len(parts[0]) != 2 || len(parts[1]) != traceDigits || len(parts[2]) != spanDigits || len(parts[3]) != 2 {
		return p, false
	}
	for _, part := range parts {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return p, false
		}
	}
	if parts[0] == "ff" || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return p, false
	}
	return Traceparent{Trace: parts[1], Span: parts[2], Sampled: strings.ContainsAny(parts[3][1:], "13579bdf")}, true
}

// String is the traceparent in version 00.
func (p Traceparent) String() string {
	flags := "00"
	if p.Sampled {
		flags = "01"
	}
	return "00-" + p.Trace + "-" + p.Span + "-" + flags
}
