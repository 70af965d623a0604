// Package picture says which images models are shown. A provider refuses the whole request
// for one that it cannot read, and with it every later request of the conversation.
package picture

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
	"slices"
)

// The largest image that providers take.
const (
	MaxBytes = 5 << 20 / 4 * 3 // base64 makes 5 MiB of it, which is Anthropic's limit
	MaxEdge  = 8000            // pixels, Anthropic's limit
	maxArea  = 16 << 20        // pixels; more takes 64 MiB to decode, and is scaled down by every provider
)

// seen are the types of image that models are shown.
var seen = []string{"image/png", "image/jpeg", "image/gif", webp}

const webp = "image/webp"

// Info is what an image is that models can be shown.
type Info struct {
	MediaType     string // as its bytes say, whatever its name or sender does
	Width, Height int
}

// ErrNone says that data are no image of a type that models are shown.
var ErrNone = errors.New("it is no PNG, JPEG, GIF or WebP")

// UnfitError is an image that providers refuse.
type UnfitError struct {
	Reason string // behind "it"
	Large  bool   // a copy that is scaled down would do
	Err    error
}

func (e *UnfitError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("it %s: %v", e.Reason, e.Err)
	}
	return "it " + e.Reason
}

func (e *UnfitError) Unwrap() error { return e.Err }

// Is reports whether data begin like an image that models are shown.
func Is(data []byte) bool { return slices.Contains(seen, http.DetectContentType(data)) }

// Check looks at the whole of an image. The error says why no model is shown it:
// [ErrNone], or an [*UnfitError].
func Check(data []byte) (Info, error) {
	p := Info{MediaType: http.DetectContentType(data)}
	if !slices.Contains(seen, p.MediaType) {
		return Info{}, ErrNone
	}
	var err error
	if p.Width, p.Height, err = sizeOf(p.MediaType, data); err != nil {
		return p, &UnfitError{Reason: fmt.Sprintf("is %s that cannot be decoded", p.MediaType), Err: err}
	}
	switch {
	case len(data) > MaxBytes:
		return p, tooLarge(fmt.Sprintf("%d bytes", len(data)), fmt.Sprintf("%d bytes", MaxBytes))
	case max(p.Width, p.Height) > MaxEdge || p.Width*p.Height > maxArea:
		return p, tooLarge(fmt.Sprintf("%d x %d pixels", p.Width, p.Height),
			fmt.Sprintf("%d on an edge and %d in all", MaxEdge, maxArea))
	case min(p.Width, p.Height) < 1:
		return p, &UnfitError{Reason: "has no pixels"}
	}
	if p.MediaType != webp { // the standard library does not decode it
		if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
			return p, &UnfitError{Reason: fmt.Sprintf("is a damaged image (%s)", p.MediaType), Err: err}
		}
	}
	return p, nil
}

func tooLarge(has, most string) error {
	return &UnfitError{Reason: fmt.Sprintf("has %s; at most %s can be shown", has, most), Large: true}
}

// sizeOf is width and height in pixels, as the head of the image says.
func sizeOf(mediaType string, data []byte) (width, height int, err error) {
	if mediaType == webp {
		return webpSize(data)
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	return config.Width, config.Height, err
}

var errWebP = errors.New("it is cut off, or no WebP")

// webpSize reads the size out of the first chunk: VP8 (RFC 6386, 9.1), VP8L or
// VP8X (RFC 9649, 3.4 and 2.7).
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
