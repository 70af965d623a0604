package file

import (
	"bytes"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// isItem reports whether a place is below a folder .ai, where signatures count.
func (p *project) isItem(pl *place) bool {
	return protect.InAI(protect.Split(filepath.Join(p.real, pl.rel()))) || protect.InAI(protect.Split(pl.asked))
}

// checkContent refuses content that git would run commands from, and an item with a
// signature that its file did not have: what a tool writes is unsigned. With a
// signature from elsewhere it would become, for example, an older version of the
// item that once was signed.
func (p *project) checkContent(pl *place, before, after []byte) error {
	if err := pl.checkRepository(after); err != nil || !p.isItem(pl) {
		return err
	}
	had := map[string]bool{}
	for _, l := range signatures(before) {
		had[l] = true
	}
	for _, l := range signatures(after) {
		if !had[l] {
			path := filepath.ToSlash(pl.asked)
			return tool.Faultf(tool.CodeProtected, "the content for %q has a signature line, and nothing was written", path).
				With("path", path).WithHint("Leave that line out. Items are signed with rye_sign, or by the person.")
		}
	}
	return nil
}

// signatures are the lines of a text that hold one.
func signatures(data []byte) []string {
	if !bytes.Contains(data, []byte(signatureStart)) {
		return nil
	}
	var found []string
	for _, l := range splitLines(data) {
		if sign.Holds(l.text) {
			found = append(found, string(l.text))
		}
	}
	return found
}
