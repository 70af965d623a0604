package web

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/rye-mcp/rye-mcp/tools/guard"
)

// Formats of a document.
const (
	formatMarkdown = "markdown"
	formatText     = "text"
	formatHTML     = "html"
	formatRaw      = "raw"
)

const (
	// maxBody is how much of an answer is read, unpacked.
	maxBody = 5 << 20
	// maxHTML is how much of a page is taken apart.
	maxHTML = 2 << 20
)

// document is what an answer holds, as a text in the format that was asked for.
type document struct {
	url       string // the last one of the redirects
	mediaType string
	title     string
	text      string
	notes     []string
}

// readDocument reads an answer. A body that is cut off by the other side is no
// document.
func readDocument(resp *http.Response, format string) (*document, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	d := &document{url: resp.Request.URL.String()}
	if len(body) > maxBody {
		body = body[:maxBody]
		d.notes = append(d.notes, fmt.Sprintf("only the first %d MiB were read", maxBody>>20))
	}
	given := resp.Header.Get("Content-Type")
	if given == "" {
		given = http.DetectContentType(body)
	}
	d.mediaType, _, err = mime.ParseMediaType(given)
	if err != nil {
		given, d.mediaType = "", "unknown"
	}
	d.fill(body, given, resp.Request.URL, format)
	return d, nil
}

// fill reads the body as its type says.
func (d *document) fill(body []byte, contentType string, at *url.URL, format string) {
	switch {
	case isHTML(d.mediaType):
		text := decoded(body, contentType)
		if format == formatRaw {
			d.text = text
			return
		}
		d.page(text, at, format)
	case isText(d.mediaType) || d.mediaType == "unknown" && !guard.IsBinary(body):
		d.text = decoded(body, contentType)
	default:
		d.text = guard.Binary(body)
		d.notes = append(d.notes, "only text can be shown")
	}
}

func isHTML(mediaType string) bool {
	return mediaType == "text/html" || mediaType == "application/xhtml+xml"
}

// textTypes are text although they are not called so.
var textTypes = []string{
	"application/json", "application/xml", "application/javascript", "application/ecmascript", "application/x-javascript",
	"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonlines", "application/graphql",
	"application/x-sh", "application/sql", "application/rtf", "image/svg+xml", "application/x-www-form-urlencoded",
}

func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || slices.Contains(textTypes, mediaType) ||
		strings.HasSuffix(mediaType, "+json") || strings.HasSuffix(mediaType, "+xml") || strings.HasSuffix(mediaType, "+yaml")
}

// decoded is a body as UTF-8: by its byte order mark, by what the answer and the
// page itself say, and otherwise as browsers take it.
func decoded(body []byte, contentType string) string {
	encoding, name, _ := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" {
		return strings.TrimPrefix(string(body), "\ufeff")
	}
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		return string(body) // bytes that are no text are replaced when it is shown
	}
	return strings.TrimPrefix(string(text), "\ufeff")
}
