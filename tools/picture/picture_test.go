package picture

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// TestCheck: what a model is shown is a whole image of a type that every provider takes,
// whatever it is called.
func TestCheck(t *testing.T) {
	t.Parallel()
	canvas := image.NewGray(image.Rect(0, 0, 20, 10))
	var asPNG, asJPEG, asGIF bytes.Buffer
	for _, err := range []error{png.Encode(&asPNG, canvas), jpeg.Encode(&asJPEG, canvas, nil), gif.Encode(&asGIF, canvas, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const none = ""
	for name, c := range map[string]struct {
		data  string
		want  string // media type; empty: none is shown
		unfit bool   // it is an image all the same
	}{
		"PNG":       {asPNG.String(), "image/png", false},
		"JPEG":      {asJPEG.String(), "image/jpeg", false},
		"GIF":       {asGIF.String(), "image/gif", false},
		"icon":      {"\x00\x00\x01\x00\x01\x00\x10\x10", none, false},
		"SVG":       {`<svg xmlns="http://www.w3.org/2000/svg"/>`, none, false},
		"BMP":       {"BM\x00\x00\x00\x00", none, false},
		"nothing":   {"", none, false},
		"its head":  {asPNG.String()[:asPNG.Len()-8], none, true},
		"half":      {asJPEG.String()[:asJPEG.Len()/2], none, true},
		"too heavy": {asPNG.String() + string(make([]byte, MaxBytes)), none, true},
		"text":      {"\x89PNG is a format", none, false},
	} {
		info, err := Check([]byte(c.data))
		_, unfit := errors.AsType[*UnfitError](err)
		if (err == nil) != (c.want != none) || unfit != c.unfit || c.want != none && (info != Info{c.want, 20, 10}) {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		if err != nil && !unfit && !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
