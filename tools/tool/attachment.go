package tool

// Attachment is what a tool returns beside its JSON result: an image to look at,
// or content that has no place in the result because it is too long or no text.
// Inside a thread it is kept as an artifact; images are shown to models that can
// see, and to MCP clients.
type Attachment struct {
	Name      string // what it is, for a model: the path of a file, stdout
	MediaType string // for example image/png
	Data      []byte
	// Picture says that the data are an image that models can be shown, as
	// picture.Check has found. False: nobody has looked yet.
	Picture bool
}

// Attacher is implemented by results that have attachments.
type Attacher interface{ Attachments() []Attachment }

// AttachmentsOf are the attachments of a result, if it has any.
func AttachmentsOf(result any) []Attachment {
	if a, ok := result.(Attacher); ok {
		return a.Attachments()
	}
	return nil
}

// Failer is implemented by results that can tell of a failure: of a thread, say, where the
// call that waited for it did what it was to do.
type Failer interface{ Failed() bool }

// Failed reports whether a result tells of a failure.
func Failed(result any) bool {
	f, ok := result.(Failer)
	return ok && f.Failed()
}

// Pager is implemented by results that depend on the call in whether they are a
// page, see [Definition.Paged].
type Pager interface{ Paged() bool }

// IsPage reports whether a result says that it is one page of something longer.
func IsPage(result any) bool {
	p, ok := result.(Pager)
	return ok && p.Paged()
}
