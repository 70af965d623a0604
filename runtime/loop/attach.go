package loop

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
	"github.com/rye-mcp/rye-mcp/tools/guard"
	"github.com/rye-mcp/rye-mcp/tools/picture"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The most images that one conversation may hold, for every call sends all of them
// again: Anthropic takes at most 32 MB in one request, in which base64 makes a
// third more of them, and no large images beside more than 20.
const (
	maxImages     = 20
	maxImageBytes = 20 << 20
)

// gallery counts the images of a conversation. The calls of a turn use it at the
// same time.
type gallery struct {
	mu    sync.Mutex
	count int
	bytes int
}

// admit reports whether another image has room, and counts it.
func (g *gallery) admit(size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count == maxImages || g.bytes+size > maxImageBytes {
		return false
	}
	g.count++
	g.bytes += size
	return true
}

// attach keeps what a result brings along, and returns what the model is told
// about it and the images it is shown.
func (r *run) attach(attachments []tool.Attachment) (notes string, images []llm.Image) {
	var b strings.Builder
	for _, a := range attachments {
		picture, err := pictureIn(a)
		if err == nil {
			a.MediaType = picture.MediaType
		}
		note, image := r.attachOne(a, err)
		fmt.Fprintf(&b, "\n[%s: %d bytes, %s; %s]", a.Name, len(a.Data), a.MediaType, note)
		if image != nil {
			images = append(images, *image)
		}
	}
	return b.String(), images
}

// pictureIn is the image that an attachment is. The error says why no model is shown it:
// one that the provider refuses would end the thread, and every resume of it.
func pictureIn(a tool.Attachment) (picture.Info, error) {
	if a.Picture {
		return picture.Info{MediaType: a.MediaType}, nil
	}
	return picture.Check(a.Data)
}

// attachOne keeps one attachment; unfit says why it is no image to be shown.
func (r *run) attachOne(a tool.Attachment, unfit error) (note string, image *llm.Image) {
	refused, isImage := errors.AsType[*picture.UnfitError](unfit)
	switch {
	case isImage:
		return fmt.Sprintf("not shown, for %s; %s", refused, r.keptBinary(a.Data)), nil
	case unfit != nil && guard.IsBinary(a.Data):
		return r.keptBinary(a.Data), nil
	case unfit != nil:
		return r.kept(guard.Clean(string(a.Data))), nil
	case !r.model.choice.Vision:
		return "you cannot see images", nil
	case !r.gallery.admit(len(a.Data)):
		return fmt.Sprintf("not shown, because a conversation holds at most %d images of %d MiB together", maxImages, maxImageBytes>>20), nil
	}
	hash, _, ok := r.keep(a.Data)
	if !ok {
		return notKept + ", and is not shown", nil
	}
	return "shown to you", &llm.Image{MediaType: a.MediaType, Ref: hash, Data: a.Data}
}

// keptBinary keeps data that no model reads.
func (r *run) keptBinary(data []byte) string {
	hash, _, ok := r.keep(data)
	if !ok {
		return "not text; " + notKept
	}
	return "not text, kept as artifact " + artifact.Ref(hash)
}

// blindBlocks leaves a list without images as it is, so that it is recognised as
// one that was sent before.
func blindBlocks(blocks []llm.Block) []llm.Block {
	var out []llm.Block
	for i, b := range blocks {
		if len(b.Images) == 0 {
			continue
		}
		if out == nil {
			out = append(out, blocks...)
		}
		for _, image := range b.Images {
			b.Text += fmt.Sprintf("\n[%s of %d bytes; you cannot see images]", image.MediaType, len(image.Data))
		}
		b.Images = nil
		if b.Type == llm.ImageBlock {
			b.Type = llm.TextBlock
		}
		out[i] = b
	}
	if out == nil {
		return blocks
	}
	return out
}
