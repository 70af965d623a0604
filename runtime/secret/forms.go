package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

// minLine is the least length of a line of a longer value that is hidden also
// where it stands alone, as in a listing with line numbers.
const minLine = 16

// formsOf lists the ways in which a value may be written, longest first: as it
// is, in JSON, in an address, and in base64 and hexadecimal digits.
func formsOf(value string) []string {
	plain := []string{value}
	if trimmed := strings.TrimSpace(value); trimmed != value && len(trimmed) >= inputs.MinSecret {
		plain = append(plain, trimmed)
	}
	if lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) >= minLine { // it may be indented in another way
				plain = append(plain, line)
			}
		}
	}
	var forms []string
	for _, text := range plain {
		once := inJSON(text)
		forms = append(forms, text, once, inJSON(once), htmlSafe(text), strings.ReplaceAll(once, "/", `\/`))
		forms = append(forms, inAddress(text)...)
		forms = append(forms, inBase64([]byte(text))...)
		digits := hex.EncodeToString([]byte(text))
		forms = append(forms, digits, strings.ToUpper(digits))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// quote is a text as JSON, without the escapes that only HTML needs.
func quote(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func inJSON(text string) string {
	quoted := quote(text)
	return string(quoted[1 : len(quoted)-1])
}

// htmlSafe is a text as encoding/json writes it by default.
func htmlSafe(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil { // a string always encodes
		return text
	}
	return string(quoted[1 : len(quoted)-1])
}

// inAddress lists a text as it stands in addresses and forms.
func inAddress(text string) []string {
	query := url.QueryEscape(text)
	all := []string{
		query, url.PathEscape(text), strings.ReplaceAll(query, "+", "%20"), url.UserPassword("", text).String()[1:],
	}
	for _, escaped := range slices.Clone(all) {
		all = append(all, lowerEscapes(escaped))
	}
	return all
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// inBase64 lists the encodings of a value, alone and within longer data: there it
// begins at one of three places of a group of four digits, and the digits that
// it shares with its neighbours are left out.
func inBase64(value []byte) []string {
	var forms []string
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, e.EncodeToString(value))
		raw := e.WithPadding(base64.NoPadding)
		forms = append(forms, raw.EncodeToString(value))
		for before := range 3 {
			digits := raw.EncodeToString(append(make([]byte, before), value...))
			first := (8*before + 5) / 6           // the first digit that is the value's alone
			last := 8 * (before + len(value)) / 6 // behind the last one
			if core := digits[first:last]; len(core) >= inputs.MinSecret {
				forms = append(forms, core)
			}
		}
	}
	return forms
}
