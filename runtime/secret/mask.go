package secret

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// span is a part of a text that says a secret.
type span struct {
	start, end  int
	placeholder string
}

// Mask puts placeholders in the place of values, also where a value is written
// in JSON, in an address, in base64 or in hexadecimal digits, or is broken into
// lines. Values that overlap become one placeholder, that of the longest.
func (v *Vault) Mask(text string) string {
	return v.masked(text, func(out *strings.Builder, _, placeholder string) { out.WriteString(placeholder) })
}

// MaskLines does the same and leaves every line break of the text where it is: each
// line that has a part of a value gets the placeholder for it.
func (v *Vault) MaskLines(text string) string {
	return v.masked(text, func(out *strings.Builder, said, placeholder string) {
		for line := range strings.Lines(said) {
			content := strings.TrimRight(line, "\r\n")
			if content != "" {
				out.WriteString(placeholder)
			}
			out.WriteString(line[len(content):])
		}
	})
}

// masked is a text in which hide writes what stands for each part that says a
// secret.
func (v *Vault) masked(text string, hide func(out *strings.Builder, said, placeholder string)) string {
	spans := v.spans(text)
	if len(spans) == 0 {
		return text
	}
	var out strings.Builder
	done := 0
	for _, s := range spans {
		out.WriteString(text[done:s.start])
		hide(&out, text[s.start:s.end], s.placeholder)
		done = s.end
	}
	out.WriteString(text[done:])
	return out.String()
}

// MaskBytes is [Vault.Mask] for data that need not be text.
func (v *Vault) MaskBytes(data []byte) []byte {
	if v.Empty() {
		return data
	}
	text := string(data)
	if masked := v.Mask(text); masked != text {
		return []byte(masked)
	}
	return data
}

// spans finds what is to be hidden in a text, in order and without overlaps.
func (v *Vault) spans(text string) []span {
	if v.Empty() {
		return nil
	}
	var found []span
	for start, f := range v.asIs.each(text) {
		found = append(found, span{start, start + len(f.text), f.placeholder})
	}
	for i, breaks := range lineBreaks {
		j := join(text, breaks)
		if j.pieces == nil {
			continue
		}
		for start, f := range v.joined[i].each(j.text) {
			found = append(found, span{j.whole(start), j.whole(start+len(f.text)-1) + 1, f.placeholder})
		}
	}
	return merged(found)
}

// merged joins spans that overlap. Of those that begin together the longest, and
// of the others the one found first, gives its placeholder.
func merged(found []span) []span {
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	var out []span
	for _, s := range found {
		last := len(out) - 1
		switch {
		case last < 0 || s.start >= out[last].end:
			out = append(out, s)
		case s.end > out[last].end:
			if s.end-s.start > out[last].end-out[last].start {
				out[last].placeholder = s.placeholder
			}
			out[last].end = s.end
		}
	}
	return out
}

// Begun is how many bytes at the end of a text may be the beginning of a value, whose
// rest is still to come.
func (v *Vault) Begun(text string) int {
	if v.Empty() {
		return 0
	}
	text = text[max(0, len(text)-2*v.reach):]
	begun := v.asIs.begun(text)
	for i, breaks := range lineBreaks {
		if j := join(text, breaks); j.pieces != nil {
			if n := v.joined[i].begun(j.text); n > 0 {
				begun = max(begun, len(text)-j.whole(len(j.text)-n))
			}
		}
	}
	return len(text) - item.Start(text, len(text)-begun)
}

// Writer masks what is written to it, in pieces that may cut a value anywhere,
// before it goes to w. It holds back what may be the beginning of a value, so
// Close must be called after the last piece; that does not close w.
func (v *Vault) Writer(w io.Writer) io.WriteCloser { return &writer{vault: v, to: w} }

// batch is how much is gathered at least, beside what is held back, before it is
// masked.
const batch = 32 << 10

type writer struct {
	vault *Vault
	to    io.Writer
	held  []byte
}

// Write takes all of p.
func (w *writer) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	// A value that is broken into lines is longer than its form.
	hold := 2 * w.vault.reach
	if len(w.held) < hold+max(batch, hold) { // held bytes are looked at again
		return len(p), nil
	}
	return len(p), w.pass(len(w.held) - hold)
}

// pass writes what is held up to cut, or up to the beginning of a value there.
func (w *writer) pass(cut int) error {
	text := string(w.held)
	for _, s := range w.vault.spans(text) {
		// A longer match repeats itself, and is found again on both sides of the cut.
		if s.start < cut && cut < s.end && s.end-s.start <= 2*w.vault.reach {
			cut = s.start
		}
	}
	_, err := io.WriteString(w.to, w.vault.Mask(text[:cut]))
	w.held = append(w.held[:0], text[cut:]...)
	return err
}

func (w *writer) Close() error { return w.pass(len(w.held)) }
