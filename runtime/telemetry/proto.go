package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
)

// The fields of OTLP's messages in their binary encoding, as opentelemetry-proto numbers
// them: collector/trace/v1/trace_service.proto, trace/v1/trace.proto,
// common/v1/common.proto, resource/v1/resource.proto.

// protoMessage is a message of Protocol Buffers in the making.
type protoMessage []byte

// The wire types.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

func (m *protoMessage) tag(field, wire uint64) { *m = binary.AppendUvarint(*m, field<<3|wire) }

func (m *protoMessage) varint(field, v uint64) {
	if v != 0 {
		m.tag(field, wireVarint)
		*m = binary.AppendUvarint(*m, v)
	}
}

func (m *protoMessage) fixed64(field, v uint64) {
	m.tag(field, wireFixed64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *protoMessage) bytes(field uint64, v []byte) {
	m.tag(field, wireBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(v))), v...)
}

func (m *protoMessage) text(field uint64, v string) {
	if v != "" {
		m.bytes(field, []byte(strings.ToValidUTF8(v, "\uFFFD")))
	}
}

// id writes an id that is in hexadecimal; an empty one is left out.
func (m *protoMessage) id(field uint64, digits string) {
	if b, err := hex.DecodeString(digits); err == nil && len(b) > 0 {
		m.bytes(field, b)
	}
}

func (m *protoMessage) attributes(field uint64, list []Attribute) {
	for _, a := range list {
		var kv protoMessage
		kv.text(1, a.Key)
		kv.bytes(2, a.Value.proto())
		m.bytes(field, kv)
	}
}

// proto is an AnyValue.
func (v Value) proto() (m protoMessage) {
	switch v := v.v.(type) {
	case string: // an empty one is a value too
		m.bytes(1, []byte(strings.ToValidUTF8(v, "\uFFFD")))
	case int64:
		m.tag(3, wireVarint)
		m = binary.AppendUvarint(m, uint64(v)) //nolint:gosec // negative numbers are written as their complement
	case float64:
		m.fixed64(4, math.Float64bits(v))
	case []string:
		var list protoMessage
		for _, s := range v {
			list.bytes(1, Value{s}.proto())
		}
		m.bytes(5, list)
	}
	return m
}

func (r request) proto() (m protoMessage) {
	for _, rs := range r.ResourceSpans {
		var spansOf, res protoMessage
		res.attributes(1, rs.Resource.Attributes)
		spansOf.bytes(1, res)
		for _, ss := range rs.ScopeSpans {
			var in, who protoMessage
			who.text(1, ss.Scope.Name)
			who.text(2, ss.Scope.Version)
			in.bytes(1, who)
			for _, s := range ss.Spans {
				in.bytes(2, s.proto())
			}
			spansOf.bytes(2, in)
		}
		m.bytes(1, spansOf)
	}
	return m
}

func (s Span) proto() (m protoMessage) {
	m.id(1, s.TraceID)
	m.id(2, s.SpanID)
	m.id(4, s.ParentSpanID)
	m.text(5, s.Name)
	m.varint(6, uint64(s.Kind))   //nolint:gosec // one of the constants
	m.fixed64(7, uint64(s.Start)) //nolint:gosec // after 1970
	m.fixed64(8, uint64(s.End))   //nolint:gosec // after 1970
	m.attributes(9, s.Attributes)
	for _, l := range s.Links {
		var link protoMessage
		link.id(1, l.TraceID)
		link.id(2, l.SpanID)
		link.attributes(4, l.Attributes)
		m.bytes(13, link)
	}
	if s.Status != nil {
		var status protoMessage
		status.text(2, s.Status.Message)
		status.varint(3, uint64(s.Status.Code)) //nolint:gosec // one of the constants
		m.bytes(15, status)
	}
	return m
}

// partialSuccess reads an ExportTraceServiceResponse; one that is cut short or is none says
// nothing.
func partialSuccess(said []byte) (rejected int64, why string) {
	for field, v := range protoFields(said) {
		if field != 1 {
			continue
		}
		for field, v := range protoFields(v.bytes) {
			switch field {
			case 1:
				rejected = int64(min(v.number, math.MaxInt64)) //nolint:gosec // bounded
			case 2:
				why = string(v.bytes)
			}
		}
	}
	return rejected, why
}

// protoValue is the value of a field, of either wire type.
type protoValue struct {
	number uint64
	bytes  []byte
}

// protoFields are the fields of a message, as far as it is well-formed.
func protoFields(m []byte) func(yield func(field uint64, v protoValue) bool) {
	return func(yield func(uint64, protoValue) bool) {
		for len(m) > 0 {
			tag, n := binary.Uvarint(m)
			if n <= 0 {
				return
			}
			m = m[n:]
			var v protoValue
			switch tag & 7 {
			case wireVarint:
				if v.number, n = binary.Uvarint(m); n <= 0 {
					return
				}
				m = m[n:]
			case wireFixed64:
				if len(m) < 8 {
					return
				}
				v.number, m = binary.LittleEndian.Uint64(m), m[8:]
			case wireBytes:
				size, n := binary.Uvarint(m)
				if n <= 0 || size > uint64(len(m)-n) {
					return
				}
				v.bytes, m = m[n:n+int(size)], m[n+int(size):] //nolint:gosec // no more than there is
			default:
				return
			}
			if !yield(tag>>3, v) {
				return
			}
		}
	}
}
