package embed

import (
	"math"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

// FuzzParse: whatever is answered, there is a sound vector for each text, or none at all.
func FuzzParse(f *testing.F) {
	for _, body := range []string{
		`{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0.1,-2e-3]},{"index":0,"embedding":"AACAPwAAAEA="}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		`{"data":[{"embedding":[1]},{"embedding":[2]}]}`, `{"data":[{"index":0,"embedding":[NaN]},{"index":1,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1e39,1]},{"index":1,"embedding":[[1],{"a":2}]}]}`, `{"data":[{"index":-1,"embedding":[]},null]}`,
		`{"data":[{"index":0,"embedding":"AADAfw=="},{"index":1,"embedding":"AA"}],"usage":{"total_tokens":1e300}}`, `[]`, ``, `{"data":{}}`,
	} {
		f.Add([]byte(body), uint8(2))
	}
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		texts := int(n%8) + 1
		a, err := parse(body, texts)
		if err != nil {
			return
		}
		if len(a.vectors) != texts || a.tokens < 0 || len(a.model) > maxName {
			t.Fatalf("%d vectors for %d texts, %d tokens", len(a.vectors), texts, a.tokens)
		}
		for _, v := range a.vectors {
			var sum float64
			for _, x := range v {
				sum += float64(x) * float64(x)
			}
			if len(v) == 0 || len(v) != len(a.vectors[0]) || len(v) > maxDimension || sum == 0 || math.IsNaN(sum) || math.IsInf(float64(float32(math.Sqrt(sum))), 0) {
				t.Fatalf("vector %v", v)
			}
		}
	})
}

func TestChosen(t *testing.T) {
	t.Parallel()
	const byDefault = "text-embedding-3-small"
	for _, tt := range []struct {
		models      []string
		named, want string
	}{
		{[]string{"a", "text-embedding-3-small"}, byDefault, "text-embedding-3-small"},
		{[]string{"all-minilm:l6", "custom-embed", "mxbai-embed-large:335m"}, byDefault, "mxbai-embed-large:335m"},
		{[]string{"b-embed", "c-embed", "llama"}, byDefault, "b-embed"},
		{[]string{"llama"}, byDefault, ""},
		{nil, byDefault, ""},
		{[]string{"llama", "mine:latest"}, "mine", "mine:latest"},
		{[]string{"nomic-embed-text"}, "mine", ""},
	} {
		got, err := chosen(tt.models, tt.named)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%v %s: %q, %v", tt.models, tt.named, got, err)
		}
	}
}
