package parse

import (
	"path"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Knowledge reads a knowledge entry: Markdown with metadata on top, or YAML when
// the path ends in .yaml or .yml. A name that the metadata lacks comes from the
// path, a title from the first heading. Errors are [*Error].
func Knowledge(path string, src []byte) (*item.KnowledgeDoc, error) {
	file, err := newSource(path, src)
	if err != nil {
		return nil, err
	}
	doc := &item.KnowledgeDoc{}
	if isYAML(path) {
		err = readYAMLKnowledge(doc, file)
	} else {
		err = readMarkdownKnowledge(doc, file)
	}
	if err != nil {
		return nil, err
	}
	if doc.Name == "" {
		doc.Name = baseName(path)
	}
	if doc.Title == "" {
		doc.Title, _, _ = firstHeading(doc.Body)
	}
	return doc, nil
}

func readMarkdownKnowledge(doc *item.KnowledgeDoc, file *source) error {
	text, line := skipComments(file.text)
	first, rest := cutLine(text)
	closes := metadataEnd(first)
	if closes == nil {
		doc.Body = strings.TrimSpace(text)
		return nil
	}
	metadata, body, found := cutAtLine(rest, closes)
	if !found {
		return file.errorf(line, "the metadata that starts here is never closed")
	}
	doc.Body = strings.TrimSpace(body)
	m, err := file.yamlMapping(metadata, line+1)
	if err != nil {
		return err
	}
	if m == nil {
		return file.errorf(line+1, "the metadata must be a YAML mapping of keys to values")
	}
	return readMetadataKeys(doc, m)
}

// readYAMLKnowledge takes the body from the key content or body, else it is the
// whole file.
func readYAMLKnowledge(doc *item.KnowledgeDoc, file *source) error {
	m, err := file.yamlMapping(file.text, 1)
	if err != nil {
		return err
	}
	doc.Body = strings.TrimSpace(string(StripSignature([]byte(file.text))))
	if m == nil {
		return nil
	}
	for _, key := range []string{"content", "body"} {
		if body, ok := m.values[key].(string); ok {
			doc.Body = strings.TrimSpace(body)
			delete(m.values, key)
			break
		}
	}
	return readMetadataKeys(doc, m)
}

func readMetadataKeys(doc *item.KnowledgeDoc, m *mapping) error {
	fields := []struct {
		to   *string
		keys []string
	}{
		{&doc.Name, []string{"name", "id"}},
		{&doc.Title, []string{"title"}},
		{&doc.Category, []string{"category"}},
		{&doc.Version, []string{"version"}},
		{&doc.Author, []string{"author"}},
		{&doc.Description, []string{"description"}},
		{&doc.EntryType, []string{"entry_type"}},
		{&doc.CreatedAt, []string{"created_at"}},
	}
	for _, f := range fields {
		var err error
		if *f.to, err = m.text(f.keys...); err != nil {
			return err
		}
	}
	doc.Tags = m.list("tags")
	doc.References = m.list("references")
	doc.Extends = m.list("extends")
	doc.UsedBy = m.list("used_by")
	doc.Metadata = m.values
	return nil
}

// skipComments returns text behind its leading HTML comments and empty lines,
// and the line it starts on.
func skipComments(text string) (rest string, line int) {
	rest = text
	for {
		trimmed := strings.TrimLeft(rest, " \t\n")
		if !strings.HasPrefix(trimmed, "<!--") {
			break
		}
		_, after, closed := strings.Cut(trimmed, "-->")
		if !closed {
			break
		}
		rest = after
	}
	// Only whole empty lines go: the indentation of the first line may be code.
	for {
		first, after := cutLine(rest)
		if strings.TrimSpace(first) != "" || after == "" {
			break
		}
		rest = after
	}
	return rest, lineAt(text, len(text)-len(rest))
}

// metadataEnd returns what recognises the end of the metadata that line opens,
// or nil when it opens none.
func metadataEnd(line string) func(line string) bool {
	line = strings.TrimRight(line, " \t")
	if line == "---" {
		return func(l string) bool { l = strings.TrimRight(l, " \t"); return l == "---" || l == "..." }
	}
	if info, ok := strings.CutPrefix(line, "```"); ok {
		switch strings.ToLower(strings.TrimSpace(info)) {
		case "yaml", "yml":
			return func(l string) bool { return closesFence(l, "```") }
		}
	}
	return nil
}

// cutAtLine splits text around the first line that ends matches.
func cutAtLine(text string, ends func(line string) bool) (before, after string, found bool) {
	for offset := 0; offset < len(text); {
		line, rest := cutLine(text[offset:])
		if ends(line) {
			return text[:offset], rest, true
		}
		offset += len(line) + 1
	}
	return "", "", false
}

func isYAML(file string) bool {
	ext := path.Ext(slashed(file))
	return ext == ".yaml" || ext == ".yml"
}

// baseName is the last segment of a path without its extension.
func baseName(file string) string {
	base := path.Base(slashed(file))
	return strings.TrimSuffix(base, path.Ext(base))
}

// slashed lets package path read the paths of Windows.
func slashed(file string) string { return strings.ReplaceAll(file, `\`, "/") }
