package file

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/picture"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// webpHead is the beginning of a WebP file with such a first chunk, filled up.
func webpHead(chunk string, payload ...byte) string {
	body := "WEBP" + chunk + "\x00\x00\x00\x00" + string(payload)
	for len(body) < 40 {
		body += "\x00"
	}
	size := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	return "RIFF" + string(size) + body
}

func TestReadImage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	canvas := image.NewPaletted(image.Rect(0, 0, 20, 10), color.Palette{color.Black, color.White})
	var asPNG, asJPEG, asGIF bytes.Buffer
	for _, err := range []error{png.Encode(&asPNG, canvas), jpeg.Encode(&asJPEG, canvas, nil), gif.Encode(&asGIF, canvas, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ content, mediaType string }{
		"a.png":    {asPNG.String(), "image/png"},
		"a.jpeg":   {asJPEG.String(), "image/jpeg"},
		"a.gif":    {asGIF.String(), "image/gif"},
		"no-ext":   {asPNG.String(), "image/png"},
		"lossy":    {webpHead("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 20, 0, 10, 0x40), "image/webp"},
		"lossless": {webpHead("VP8L", 0x2f, 19, 0x40, 2, 0), "image/webp"},
		"extended": {webpHead("VP8X", 0, 0, 0, 0, 19, 0, 0, 9, 0, 0), "image/webp"},
	} {
		b.put(name, c.content)
		got := do[imageResult](b, "read", in{"path": name})
		attached := (&got).Attachments()
		if got.MediaType != c.mediaType || got.Width != 20 || got.Height != 10 || got.Bytes != len(c.content) ||
			len(attached) != 1 || string(attached[0].Data) != c.content || attached[0].Name != name || attached[0].MediaType != c.mediaType {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// pngHead is the beginning of a PNG of that size.
func pngHead(width, height uint32) string {
	chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	chunk = append(binary.BigEndian.AppendUint32(chunk, height), 8, 0, 0, 0, 0)
	return "\x89PNG\r\n\x1a\n\x00\x00\x00\x0d" + string(binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk)))
}

func TestRefusedImages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var wide, damaged bytes.Buffer
	for _, err := range []error{
		png.Encode(&wide, image.NewGray(image.Rect(0, 0, picture.MaxEdge+1, 1))),
		png.Encode(&damaged, image.NewGray(image.Rect(0, 0, 10, 10))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ content, words string }{
		"wide":        {wide.String(), "8001 x 1 pixels"},
		"large":       {pngHead(5000, 4000), "Scale a copy"},
		"heavy":       {damaged.String() + string(make([]byte, picture.MaxBytes)), "bytes can be shown"},
		"damaged":     {damaged.String()[:damaged.Len()-20], "damaged image"},
		"cut webp":    {webpHead("VP8X", 0, 0, 0, 0, 19, 0, 0, 9, 0, 0)[:35], "cut off"},
		"unknown":     {webpHead("VP9 "), "no WebP"},
		"other types": {"BM\x00\x00\x00\x00", "not text: image/bmp"},
	} {
		b.put(name, c.content)
		b.refuse("read", in{"path": name}, tool.CodeUnsupported, c.words)
	}
	b.refuse("edit_lines", in{"path": "wide", "changes": []in{{"line_id": "000000", "new_content": ""}}}, tool.CodeUnsupported, "not text")
}
