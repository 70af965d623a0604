package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// decode reads the body of a request: one JSON object with the members of into and no
// others.
func decode(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badBody(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badBody(errors.New("more follows behind the object"))
	}
	return nil
}

func badBody(err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("the body is empty")
	}
	return refuse(http.StatusBadRequest, tool.CodeBadArguments, "%s", clip(fmt.Sprintf("the body must be a JSON object: %v", err)))
}

// clip is text for a log or an error: short, and without what changes how the rest is
// shown.
func clip(text string) string {
	return item.Clip(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) {
			return '\uFFFD'
		}
		return r
	}, text), 200)
}
