package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // formats that models can see
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The largest image that providers take. A larger one is refused here: they would
// refuse the whole request, and with it every later one of the conversation.
const (
	maxImageBytes = 5 << 20 / 4 * 3 // base64 makes 5 MiB of it, which is Anthropic's limit
	maxImageEdge  = 8000            // pixels, Anthropic's limit
	maxImageArea  = 16 << 20        // pixels; more takes 64 MiB to decode, and is scaled down by every provider
)

// seen are the types of image that models are shown.
var seen = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// imageResult is an image as a result: about it, with the image attached.
type imageResult struct {
	Path      string `json:"path"`
	MediaType string `json:"media_type"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Bytes     int    `json:"bytes"`

	data []byte
}

// Attachments implements [tool.Attacher].
func (r *imageResult) Attachments() []tool.Attachment {
	return []tool.Attachment{{Name: r.Path, MediaType: r.MediaType, Data: r.data}}
}

// isImage reports whether data are an image that models are shown.
func isImage(data []byte) bool {
	return isBinary(data) && slices.Contains(seen, http.DetectContentType(data))
}

func readImage(rel string, data []byte) (any, error) {
	r := &imageResult{Path: filepath.ToSlash(rel), MediaType: http.DetectContentType(data), Bytes: len(data), data: data}
	width, height, err := imageSize(r.MediaType, data)
	r.Width, r.Height = width, height
	switch {
	case err != nil:
		return nil, tool.Faultf(tool.CodeUnsupported, "%q is %s that cannot be decoded: %w", r.Path, r.MediaType, err).With("path", r.Path)
	case len(data) > maxImageBytes:
		return nil, r.tooLarge(fmt.Sprintf("%d bytes", len(data)), fmt.Sprintf("%d bytes", maxImageBytes))
	case max(width, height) > maxImageEdge || width*height > maxImageArea:
		return nil, r.tooLarge(fmt.Sprintf("%d x %d pixels", width, height),
			fmt.Sprintf("%d on an edge and %d in all", maxImageEdge, maxImageArea))
	}
	if r.MediaType != webp {
		if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
			return nil, tool.Faultf(tool.CodeUnsupported, "%q is a damaged image (%s): %w", r.Path, r.MediaType, err).With("path", r.Path)
		}
	}
	return r, nil
}

func (r *imageResult) tooLarge(has, most string) *tool.Fault {
	return tool.Faultf(tool.CodeUnsupported, "the image %q has %s; at most %s can be shown", r.Path, has, most).
		With("path", r.Path).With("media_type", r.MediaType).With("bytes", r.Bytes).
		WithHint("Scale a copy of it down, for example with rye/bash, and read that.")
}

// imageSize is width and height in pixels, as the head of the file says.
func imageSize(mediaType string, data []byte) (width, height int, err error) {
	if mediaType == webp {
		return webpSize(data)
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	return config.Width, config.Height, err
}

const webp = "image/webp"

var errWebP = errors.New("it is cut off, or no WebP")

// webpSize reads the size out of the first chunk: VP8 (RFC 6386, 9.1), VP8L or
// VP8X (RFC 9649, 3.4 and 2.7). The standard library does not decode WebP.
func webpSize(data []byte) (width, height int, err error) {
	const head = 30
	if len(data) < head || int64(binary.LittleEndian.Uint32(data[4:]))+8 > int64(len(data)) {
		return 0, 0, errWebP
	}
	le16 := func(at int) int { return int(binary.LittleEndian.Uint16(data[at:])) }
	switch string(data[12:16]) {
	case "VP8 ":
		const bits = 1<<14 - 1
		return le16(26) & bits, le16(28) & bits, nil
	case "VP8L":
		const bits = 1<<14 - 1
		packed := int(binary.LittleEndian.Uint32(data[21:]))
		return 1 + packed&bits, 1 + packed>>14&bits, nil
	case "VP8X":
		return 1 + le16(24) + int(data[26])<<16, 1 + le16(27) + int(data[29])<<16, nil
	}
	return 0, 0, errWebP
}
