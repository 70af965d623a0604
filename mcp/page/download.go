package page

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// filePolicy lets nothing of a file run, load or be framed, should a browser ever show it.
const filePolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

// download answers with a file that a browser saves and never shows.
func download(c *call, name, contentType string, content []byte) {
	h := c.w.Header()
	h.Set("Content-Security-Policy", filePolicy)
	h.Set("Content-Type", contentType)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	wire := http.NewResponseController(c.w)
	const piece = 1 << 20
	for len(content) > 0 {
		n := min(piece, len(content))
		_ = wire.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := c.w.Write(content[:n]); err != nil {
			return // the client has gone; there is nobody to tell
		}
		content = content[n:]
	}
}

// fileName is a name for what is saved of a thread, of plain characters.
func fileName(id thread.ID, ending string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '-'
	}, string(id)) + ending
}

// Artifact is a large result of a thread.
type Artifact struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	MediaType string `json:"media_type"` // what it says it is; it is served as text or bytes
}

// artifacts lists the large results of a thread, oldest first.
func (p *Page) artifacts(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	kept, err := project.Control.Threads.Records.Of(rec.ThreadID).Artifacts().List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, threads.Fault(err)
	}
	list := make([]Artifact, len(kept))
	for i, a := range kept {
		list[i] = Artifact{Name: a.Name, Bytes: a.Size, MediaType: mediaType(a.Name)}
	}
	return map[string]any{"artifacts": list}, nil
}

// mediaTypes of the kinds of artifacts there are.
var mediaTypes = map[string]string{
	".txt": "text/plain", ".md": "text/markdown", ".json": "application/json", ".html": "text/html", ".xml": "text/xml",
	".png": "image/png", ".jpg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".pdf": "application/pdf",
}

func mediaType(name string) string {
	if known, ok := mediaTypes[strings.ToLower(path.Ext(name))]; ok {
		return known
	}
	return "application/octet-stream"
}

// artifact answers with a large result, as bytes or text whatever it says it is.
func (p *Page) artifact(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	name := c.r.PathValue("name")
	kept := project.Control.Threads.Records.Of(rec.ThreadID).Artifacts()
	list, err := kept.List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, threads.Fault(err)
	}
	for _, a := range list {
		if a.Name != name {
			continue
		}
		content, err := kept.Load(strings.TrimSuffix(a.Name, path.Ext(a.Name)))
		if err != nil {
			return nil, err
		}
		download(c, fileName("", a.Name), servedAs(a.Name), content)
		return nil, nil //nolint:nilnil // all of it was said
	}
	return nil, tool.Faultf(tool.CodeNotFound, "thread %s has no artifact %s", rec.ThreadID, clip(name))
}

// servedAs is text for what is text, in whatever language, and else bytes.
func servedAs(name string) string {
	kind := mediaType(name)
	if strings.HasPrefix(kind, "text/") || kind == "application/json" {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// export answers with the thread as one signed file that can be replayed and imported.
func (p *Page) export(ctx context.Context, c *call) (any, error) {
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	content, err := project.Export(ctx, rec.ThreadID, Scope{Chain: c.flag("chain"), Tree: c.flag("tree")})
	if err != nil {
		return nil, err
	}
	download(c, fileName(rec.ThreadID, ".ryetest"), "application/octet-stream", content)
	return nil, nil //nolint:nilnil // all of it was said
}
