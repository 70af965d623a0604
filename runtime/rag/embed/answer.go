package embed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode"

	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// maxDimension is more than any known model has (4 096 of Qwen3-Embedding-8B).
const maxDimension = 8192

// answer is what an endpoint gave for a request, checked.
type answer struct {
	model   string // empty: it does not say, or nothing that could be a name
	vectors [][]float32
	tokens  int64
	counted bool // it has said how many tokens
}

var (
	errNoAnswer  = errors.New("what it answers is not of the protocol")
	errNotFinite = errors.New("it has numbers that are none (NaN or infinite)")
)

// parse reads an answer for so many texts. The form is that of the API reference of
// OpenAI, "The embedding object"; a vector is a list of numbers, or the base64 of
// float32 values, the lowest byte first.
func parse(body []byte, texts int) (answer, error) {
	var said struct {
		Model json.RawMessage `json:"model"`
		Data  []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Usage struct {
			Prompt json.RawMessage `json:"prompt_tokens"`
			Total  json.RawMessage `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		if bytes.Contains(body, []byte("NaN")) || bytes.Contains(body, []byte("Infinity")) {
			return answer{}, errNotFinite
		}
		return answer{}, errNoAnswer // the error of the library repeats what it found
	}
	if len(said.Data) != texts {
		return answer{}, fmt.Errorf("it has %d vectors for %d texts", len(said.Data), texts)
	}
	a := answer{model: modelName(said.Model), vectors: make([][]float32, texts)}
	for i, d := range said.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= texts || a.vectors[at] != nil {
			return answer{}, fmt.Errorf("the index %d is out of place or there twice", at)
		}
		v, err := vectorOf(d.Embedding)
		if err != nil {
			return answer{}, fmt.Errorf("vector %d: %w", at, err)
		}
		a.vectors[at] = v
	}
	if err := oneLength(a.vectors); err != nil {
		return answer{}, err
	}
	a.tokens, a.counted = tokensOf(said.Usage.Total, said.Usage.Prompt)
	return a, nil
}

// oneLength holds the vectors of an answer against each other.
func oneLength(vectors [][]float32) error {
	for i, v := range vectors {
		if len(v) != len(vectors[0]) {
			return fmt.Errorf("vector %d has %d numbers and the first one %d", i, len(v), len(vectors[0]))
		}
	}
	return nil
}

// tokensOf is the larger of the counts that were given.
func tokensOf(counts ...json.RawMessage) (tokens int64, counted bool) {
	for _, raw := range counts {
		if n, given, ok := wire.Count(string(raw)); given && ok {
			tokens, counted = max(tokens, n), true
		}
	}
	return tokens, counted
}

// maxName is how long the name of a model may be, in bytes.
const maxName = 200

// modelName is what an endpoint calls its model; empty when that is no name.
func modelName(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) != nil || len(name) > maxName {
		return ""
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || unicode.IsSpace(r) {
			return ""
		}
	}
	return name
}

// vectorOf reads one vector.
func vectorOf(raw json.RawMessage) ([]float32, error) {
	var (
		v   []float32
		err error
	)
	switch {
	case len(raw) > 0 && raw[0] == '"':
		v, err = packed(raw)
	case len(raw) > 0 && raw[0] == '[':
		v, err = listed(raw)
	default:
		err = errors.New("it is missing")
	}
	if err != nil {
		return nil, err
	}
	return v, sound(v)
}

// sound says what is wrong with the numbers of a vector.
func sound(v []float32) error {
	if len(v) == 0 {
		return errors.New("it is empty")
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	switch {
	case math.IsNaN(sum), math.IsInf(sum, 0):
		return errNotFinite
	case float32(math.Sqrt(sum)) == 0:
		return errors.New("all of its numbers are zero, so it points nowhere")
	case math.Sqrt(sum) > math.MaxFloat32:
		return errors.New("its numbers are too large")
	}
	return nil
}

// packed reads base64.
func packed(raw json.RawMessage) ([]float32, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, errNoAnswer
	}
	if len(text) > base64.StdEncoding.EncodedLen(4*maxDimension) {
		return nil, tooMany()
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data)%4 != 0 {
		return nil, errors.New("it is no base64 of float32 values")
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v, nil
}

// listed reads a list of numbers, which is known to be JSON.
func listed(raw json.RawMessage) ([]float32, error) {
	inner := bytes.TrimSpace(raw[1 : len(raw)-1])
	if len(inner) == 0 {
		return nil, nil
	}
	n := bytes.Count(inner, []byte(",")) + 1
	if n > maxDimension {
		return nil, tooMany()
	}
	v := make([]float32, 0, n)
	for number := range bytes.SplitSeq(inner, []byte(",")) {
		x, err := strconv.ParseFloat(string(bytes.TrimSpace(number)), 32)
		if errors.Is(err, strconv.ErrRange) {
			return nil, errNotFinite
		}
		if err != nil {
			return nil, errors.New("it is no list of numbers")
		}
		v = append(v, float32(x))
	}
	return v, nil
}

func tooMany() error { return fmt.Errorf("it has more than %d numbers", maxDimension) }
