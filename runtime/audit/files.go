package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// maxSignedText bounds what is read of a signed text. Renderings are cut to far
// less, and the record of capabilities is bounded by what a directive can hold.
const maxSignedText = 16 << 20

// capabilities checks the record of what the thread could do, which it writes
// before its first turn.
func (a *auditor) capabilities() error {
	text, err := a.signedText(capabilitiesFile, a.left.Capabilities(), records.CapabilitiesName(a.Row.ThreadID))
	if errors.Is(err, fs.ErrNotExist) {
		// The first turn reaches the registry just before the records, where several machines have these.
		if a.Row.Kind == thread.KindDirective && (a.Row.Cost.Turns > 1 || a.Row.Cost.Turns == 1 && a.Transcript.Turns > 0) {
			a.find(capabilitiesFile, Missing, "the thread had one")
		}
		return nil
	}
	if err != nil || text == nil {
		return err
	}
	title, _, _ := bytes.Cut(text, []byte("\n"))
	if want := "# Capabilities of " + string(a.Row.ThreadID); string(title) != want {
		a.find(capabilitiesFile, transcript.Spliced, "its first line is %.120q, not %q", title, want)
	}
	return nil
}

// rendering checks the knowledge entry about the thread. It may have been removed
// or moved, as any knowledge.
func (a *auditor) rendering() error {
	if a.Rendering == "" || !a.Row.Status.Terminal() { // it is signed when the thread ends
		return nil
	}
	text, err := a.signedText(renderingFile, records.File(a.Rendering), sign.Name{Kind: string(item.Knowledge), ID: a.RenderingID})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || text == nil {
		return err
	}
	var about struct {
		ThreadID thread.ID `yaml:"thread_id"`
	}
	_, front, _ := strings.Cut(string(text), "```yaml\n")
	front, _, _ = strings.Cut(front, "\n```\n")
	if err := yaml.Unmarshal([]byte(front), &about); err != nil || about.ThreadID != a.Row.ThreadID {
		a.find(renderingFile, transcript.Spliced, "it is about thread %.80q", about.ThreadID)
	}
	return nil
}

// signedText returns a text without its signature line; nil when the signature is
// not good, which is a finding. An older signature, which is for no name, is good:
// what the text is about is compared by those who ask.
func (a *auditor) signedText(name string, from records.Source, as sign.Name) ([]byte, error) {
	src, err := records.ReadAll(from.Open, maxSignedText+1)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from.Where(), err)
	}
	sig, text := sign.Split(src, ".md")
	err = a.seal.CheckText(src, ".md", as)
	switch {
	case err == nil, errors.Is(err, sign.ErrUnbound):
		return text, nil
	case errors.Is(err, sign.ErrUnsigned):
		a.find(name, Unsigned, "it carries no signature")
	case errors.Is(err, sign.ErrOtherKey):
		a.find(name, transcript.Foreign, "it is signed by key %.80q", sig.Fingerprint)
	case errors.Is(err, sign.ErrOtherItem):
		a.find(name, transcript.Spliced, "it was signed as %.200s", sig.Name)
	default:
		a.find(name, transcript.Altered, "its content is not what was signed")
	}
	return nil, nil
}

// artifacts checks large results, which are named by the hash of their content.
// The transcript holds their names, and so vouches for them.
func (a *auditor) artifacts() error {
	return a.left.Artifacts().Each(func(name string, open func() (records.Reader, error)) error {
		if strings.HasPrefix(name, ".") && !a.ended() {
			return nil // it is being written
		}
		sum, err := hashOf(open)
		if err != nil {
			a.find("artifacts/"+name, Unreadable, "%v", err)
			return nil
		}
		if strings.TrimSuffix(name, path.Ext(name)) != sum && !strings.HasPrefix(name, ".") {
			a.find("artifacts/"+name, transcript.Altered, "its content has the hash %s", sum)
		}
		return nil
	})
}

// hashOf is the SHA-256 of a record, hex.
func hashOf(open func() (records.Reader, error)) (string, error) {
	f, err := open()
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, math.MaxInt64)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
