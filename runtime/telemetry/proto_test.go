package telemetry

import (
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// binarySpans reads spans back from the binary encoding.
func binarySpans(body []byte) (list []wireSpan) {
	for field, spansOf := range protoFields(body) {
		if field != 1 {
			continue
		}
		for field, scoped := range protoFields(spansOf.bytes) {
			if field != 2 {
				continue
			}
			for field, span := range protoFields(scoped.bytes) {
				if field == 2 {
					list = append(list, binarySpan(span.bytes))
				}
			}
		}
	}
	return list
}

func binarySpan(m []byte) (s wireSpan) {
	for field, v := range protoFields(m) {
		switch field {
		case 1:
			s.TraceID = hex.EncodeToString(v.bytes)
		case 2:
			s.SpanID = hex.EncodeToString(v.bytes)
		case 4:
			s.ParentSpanID = hex.EncodeToString(v.bytes)
		case 5:
			s.Name = string(v.bytes)
		case 6:
			s.Kind = int(v.number)
		case 7:
			s.StartTimeUnixNano = strconv.FormatUint(v.number, 10)
		case 8:
			s.EndTimeUnixNano = strconv.FormatUint(v.number, 10)
		case 9:
			s.Attributes = append(s.Attributes, binaryAttribute(v.bytes))
		case 13:
			var l struct{ TraceID, SpanID string }
			for field, v := range protoFields(v.bytes) {
				switch field {
				case 1:
					l.TraceID = hex.EncodeToString(v.bytes)
				case 2:
					l.SpanID = hex.EncodeToString(v.bytes)
				}
			}
			s.Links = append(s.Links, l)
		case 15:
			s.Status = &struct {
				Code    int
				Message string
			}{}
			for field, v := range protoFields(v.bytes) {
				switch field {
				case 2:
					s.Status.Message = string(v.bytes)
				case 3:
					s.Status.Code = int(v.number)
				}
			}
		}
	}
	return s
}

// binaryAttribute has the value as the JSON encoding has it.
func binaryAttribute(m []byte) (a struct {
	Key   string
	Value map[string]any
}) {
	for field, v := range protoFields(m) {
		if field == 1 {
			a.Key = string(v.bytes)
			continue
		}
		a.Value = binaryValue(v.bytes)
	}
	return a
}

func binaryValue(m []byte) map[string]any {
	for field, v := range protoFields(m) {
		switch field {
		case 1:
			return map[string]any{"stringValue": string(v.bytes)}
		case 3:
			return map[string]any{"intValue": strconv.FormatInt(int64(v.number), 10)}
		case 4:
			return map[string]any{"doubleValue": math.Float64frombits(v.number)}
		case 5:
			values := []any{}
			for _, one := range protoFields(v.bytes) {
				values = append(values, binaryValue(one.bytes))
			}
			return map[string]any{"arrayValue": map[string]any{"values": values}}
		}
	}
	return nil
}

// Both encodings say the same.
func TestBinary(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bodies := map[string][]byte{}
	for _, protocol := range []string{"http/json", "http/protobuf"} {
		family(w)
		for id := range w.rows {
			w.must(os.Chtimes(w.due.Path(id), noon, noon))
		}
		r := newReceiver(t)
		w.must(w.sender(r.URL, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol).Run(t.Context()))
		if got := r.requests[0].Header.Get("Content-Type"); got != map[string]string{"http/json": "application/json", "http/protobuf": "application/x-protobuf"}[protocol] {
			t.Errorf("%s: %s", protocol, got)
		}
		bodies[protocol] = r.bodies[0]
		if out := os.Getenv("OTLP_OUT"); out != "" { // to be read by other programs
			w.must(os.WriteFile(out+"."+strings.ReplaceAll(protocol, "/", "-"), r.bodies[0], 0o600))
		}
	}
	want, got := spansIn(bodies["http/json"]), binarySpans(bodies["http/protobuf"])
	if len(want) == 0 || len(got) != len(want) {
		t.Fatalf("%d spans, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%+v\nwant\n%+v", got[i], want[i])
		}
	}
}

func TestBinaryAnswer(t *testing.T) {
	t.Parallel()
	var partial, answer protoMessage
	partial.varint(1, 3)
	partial.text(2, "too old")
	answer.bytes(1, partial)
	for _, said := range []struct {
		answer   []byte
		rejected int
	}{{answer, 3}, {nil, 0}, {answer[:len(answer)-1], 0}, {[]byte("{}"), 0}, {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0}} {
		w, r := newWorld(t), newReceiver(t)
		r.answer = func(_ int, w http.ResponseWriter) { _, _ = w.Write(said.answer) }
		family(w)
		w.must(w.sender(r.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf").Run(t.Context()))
		if told := strings.Contains(w.log.String(), fmt.Sprintf(`"rejected_spans":%d,"said":"too old"`, said.rejected)); told != (said.rejected > 0) || w.due.Count() != 0 {
			t.Errorf("%x: %s", said.answer, w.log.String())
		}
	}
}

// FuzzBinaryAnswer: an endpoint answers anything.
func FuzzBinaryAnswer(f *testing.F) {
	f.Add([]byte{0x0a, 0x04, 0x08, 0x03, 0x12, 0x00})
	f.Fuzz(func(t *testing.T, said []byte) {
		if rejected, why := partialSuccess(said); rejected < 0 || len(why) > len(said) {
			t.Errorf("%d, %d bytes of %d", rejected, len(why), len(said))
		}
	})
}
