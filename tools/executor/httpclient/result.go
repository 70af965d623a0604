package httpclient

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// told are the headers of an answer that a caller is told.
var told = []string{"Content-Type", "Location", "Link", "Retry-After", "Etag", "Last-Modified"}

func resultOf(a answer) *Result {
	r := &Result{Status: a.status}
	for name, values := range a.header {
		if slices.Contains(told, name) || strings.HasPrefix(name, "X-Ratelimit-") {
			if r.Headers == nil {
				r.Headers = make(map[string]string)
			}
			r.Headers[name] = strings.Join(values, ", ")
		}
	}
	r.Body, r.Length = bodyOf(a)
	return r
}

// bodyOf is a body as JSON or text, or how long it is when it is neither.
func bodyOf(a answer) (body any, length int) {
	mediaType, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		mediaType = http.DetectContentType(a.body)
	}
	trimmed := bytes.TrimSpace(a.body)
	switch {
	case len(trimmed) == 0:
		return nil, 0
	case strings.HasSuffix(mediaType, "json") && json.Valid(trimmed):
		return json.RawMessage(trimmed), 0
	case utf8.Valid(a.body):
		return string(a.body), 0
	}
	return nil, len(a.body)
}
