package file

import (
	"errors"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/tools/picture"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

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
	return []tool.Attachment{{Name: r.Path, MediaType: r.MediaType, Data: r.data, Picture: true}}
}

// isImage reports whether data are an image that models are shown.
func isImage(data []byte) bool { return isBinary(data) && picture.Is(data) }

// readImage is an image as a result. One that no model can be shown is refused.
func readImage(rel string, data []byte) (any, error) {
	path := filepath.ToSlash(rel)
	p, err := picture.Check(data)
	if err != nil {
		fault := tool.Faultf(tool.CodeUnsupported, "the image %q cannot be shown: %w", path, err).With("path", path)
		if unfit, ok := errors.AsType[*picture.UnfitError](err); ok && unfit.Large {
			fault = fault.With("media_type", p.MediaType).With("bytes", len(data)).
				WithHint("Scale a copy of it down, for example with rye/bash, and read that.")
		}
		return nil, fault
	}
	return &imageResult{Path: path, MediaType: p.MediaType, Width: p.Width, Height: p.Height, Bytes: len(data), data: data}, nil
}
