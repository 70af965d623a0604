package loop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
	"github.com/rye-mcp/rye-mcp/tools/guard"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// fullContext is the share of the context window above which results are kept
// shorter.
const fullContext = 0.75

// toolResult is what a model gets for a call.
type toolResult struct {
	text   string
	failed bool
	images []llm.Image
	sum    string // see [llm.Block]
	sameAs string
	ended  []thread.ID // children whose end it tells of
}

// show decides what the model is given of a result. A result longer than the
// model should read unasked is kept as an artifact and summarised; one that it was
// given before is only referred to.
func (r *run) show(c llm.Block, result any, failed bool) toolResult {
	attachments := tool.AttachmentsOf(result)
	text, isText := plain(result)
	if !isText {
		attachments = append(attachments, tool.Attachment{Name: "the result", MediaType: guard.MediaType([]byte(text)), Data: []byte(text)})
	}
	whole := guard.Clean(r.Secrets.Mask(text))
	notes, images := r.attach(r.maskedAttachments(attachments))
	call := fmt.Sprintf("%s %s in turn %d (%s)", c.ToolName, clip(c.Input), r.cost.Turns, c.ToolCallID)
	earlier, sum, found := r.shown.Before(whole+notes, call)
	if found {
		return toolResult{failed: failed, text: guard.Reference(earlier), sameAs: sum}
	}
	most := r.mostChars(c, result)
	if text = whole; utf8.RuneCountInString(whole)+utf8.RuneCountInString(notes) > most {
		// However many the attachments are, the result keeps half of the room.
		notes = guard.Shorten(notes, most/2, "there are more attachments")
		text = guard.Shorten(whole, most-utf8.RuneCountInString(notes), r.kept(whole))
	}
	return toolResult{text: text + notes, failed: failed, images: images, sum: sum}
}

// mostChars is how long a result may be in the conversation, in characters.
func (r *run) mostChars(c llm.Block, result any) int {
	bounds := r.Settings.Results
	entry, _ := r.toolset.palette.Get(c.ToolName)
	switch {
	case entry.Definition.Paged, tool.IsPage(result):
		return max(bounds.PageChars, bounds.MaxChars)
	case isFull(r.contextUse()):
		return min(bounds.MaxCharsWhenFull, bounds.MaxChars)
	default:
		return bounds.MaxChars
	}
}

// plain is a result as a model reads it: text as it is, all else as JSON. It is
// false for bytes that are no text.
func plain(result any) (text string, isText bool) {
	switch v := result.(type) {
	case string:
		return v, !guard.IsBinary([]byte(v))
	case []byte:
		return string(v), !guard.IsBinary(v)
	default:
		return encode(v), true
	}
}

// keep stores content as an artifact of the thread, under its hash. False when
// that is not possible: the thread goes on without it.
func (r *run) keep(content []byte) (hash, path string, ok bool) {
	sum := sha256.Sum256(content)
	hash = hex.EncodeToString(sum[:])
	path, err := r.records().Artifacts().Write(hash, content)
	if err != nil {
		r.Log.Warn().Err(err).Int("bytes", len(content)).Msg("keep an artifact")
	}
	return hash, path, err == nil
}

// notKept says that keep was not possible.
const notKept = "the whole could not be kept"

// kept keeps text and says how to read it.
func (r *run) kept(text string) string {
	hash, _, ok := r.keep([]byte(text))
	if !ok {
		return notKept
	}
	return fmt.Sprintf("the whole is artifact %s: read it with %s, from offset (line) on, pattern (regular expression) or path (member of JSON)",
		artifact.Ref(hash), palette.ArtifactName)
}

// keepChars is how much of a tool's result is stored as the result of its run in
// the background.
const keepChars = 24_000

// keepFor bounds the result of a run in the background, which others read; they
// find the whole by its path.
func (r *run) keepFor(text string) string {
	text = guard.Clean(text)
	if utf8.RuneCountInString(text) <= keepChars {
		return text
	}
	more := notKept
	if _, path, ok := r.keep([]byte(text)); ok {
		if rel, err := filepath.Rel(r.Project, path); err == nil {
			path = rel
		}
		more = "the whole is in " + filepath.ToSlash(path)
	}
	return guard.Shorten(text, keepChars, more)
}

// encode writes a result as JSON for a model, without escaping what HTML would
// need.
func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return encode(tool.Faultf(tool.CodeToolFailed, "the result cannot be shown: %w", err).Body())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip shows the beginning of input.
func clip(b []byte) string {
	return item.Clip(string(b), 200)
}
