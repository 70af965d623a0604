package parse

import (
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Directive reads a directive. Path names the file in errors, which are
// [*Error].
func Directive(path string, src []byte) (*item.DirectiveDoc, error) {
	block, root, err := blockOf(path, src)
	if err != nil {
		return nil, err
	}
	if root.name != "directive" {
		return nil, root.errorf("the xml block holds <%s>; its root must be <directive>", root.name)
	}
	doc := &item.DirectiveDoc{Line: root.line}
	if err := readRoot(doc, root); err != nil {
		return nil, err
	}
	doc.Unknown = append(frontMatter(block.before, doc), unknownNames(root)...)
	doc.Title, doc.Prose = preamble(block.before)
	doc.Body = strings.TrimSpace(doc.Body + "\n\n" + strings.TrimSpace(block.after))
	return doc, nil
}

// reader takes over one element into the document.
type reader func(doc *item.DirectiveDoc, e *element) error

// readChildren calls the reader of each child. Elements that have none are left to
// [unknownNames], for real files carry metadata of their own; one that has a reader
// may stand once, so that none silently replaces another.
func readChildren(doc *item.DirectiveDoc, parent *element, readers map[string]reader) error {
	seen := make(map[string]int)
	for _, e := range parent.children {
		read, ok := readers[e.name]
		if !ok {
			continue
		}
		if line, twice := seen[e.name]; twice {
			return e.errorf("<%s> already stands on line %d", e.name, line)
		}
		seen[e.name] = e.line
		if err := read(doc, e); err != nil {
			return err
		}
	}
	return nil
}

func readRoot(doc *item.DirectiveDoc, root *element) error {
	doc.Name, _ = root.attr("name")
	if doc.Name == "" {
		return root.errorf("<directive> needs the attribute name")
	}
	doc.Version, _ = root.attr("version")
	doc.Extends, _ = root.attr("extends")
	if doc.Extends != "" {
		if err := item.CheckID(doc.Extends); err != nil {
			return root.errorf("extends: %v", err)
		}
	}
	return readChildren(doc, root, map[string]reader{
		"metadata":    readMetadata,
		"description": readDescription,
		"inputs":      readInputs,
		"outputs":     readOutputs,
		"process":     func(doc *item.DirectiveDoc, e *element) error { doc.Body = e.spoken(); return nil },
	})
}

func readMetadata(doc *item.DirectiveDoc, e *element) error {
	return readChildren(doc, e, map[string]reader{
		"description":            readDescription,
		"category":               func(doc *item.DirectiveDoc, e *element) error { doc.Category = e.prose(); return nil },
		"author":                 func(doc *item.DirectiveDoc, e *element) error { doc.Author = e.prose(); return nil },
		"model":                  readModel,
		"model_class":            readModel, // the older name
		"limits":                 readLimits,
		"permissions":            readPermissions,
		"hooks":                  readHooks,
		"context":                readContext,
		"continuation_directive": readContinuation,
		"workspace":              readWorkspace,
		"retry":                  readRetry,
	})
}

// readDescription serves both places a description may stand in; the first one
// that says something holds.
func readDescription(doc *item.DirectiveDoc, e *element) error {
	if doc.Description == "" {
		doc.Description = e.prose()
	}
	return nil
}

// readModel ignores the text of the element, which explains the choice.
func readModel(doc *item.DirectiveDoc, e *element) error {
	if doc.Model != (item.ModelChoice{}) {
		return e.errorf("<model> and <model_class> name the same; keep one")
	}
	doc.Model.Provider, _ = e.attr("provider")
	doc.Model.Tier, _ = e.attr("tier")
	doc.Model.ID, _ = e.attr("id")
	doc.Model.Fallback, _ = e.attr("fallback")
	effort, given := e.attr("effort")
	if given && !slices.Contains(item.Efforts(), effort) {
		return e.errorf("effort=%q is unknown; valid are %s", effort, said(strings.Join(item.Efforts(), ", ")))
	}
	doc.Model.Effort = effort
	return nil
}

// readWorkspace reads where threads of the directive work. One that is not understood
// would let them work in the project, so nothing here is let pass.
func readWorkspace(doc *item.DirectiveDoc, e *element) error {
	if len(e.children) > 0 || e.prose() != "" {
		return e.errorf("<workspace> holds nothing; its attribute type is %s", said(strings.Join(thread.WorkspaceTypes(), ", ")))
	}
	for _, a := range e.attrs {
		if a.Name.Local != "type" {
			return e.errorf("<workspace> knows no attribute %q; valid is type", a.Name.Local)
		}
	}
	doc.Workspace, _ = e.attr("type")
	if !slices.Contains(thread.WorkspaceTypes(), doc.Workspace) {
		return e.errorf("<workspace type=%q> is unknown; valid are %s", doc.Workspace, said(strings.Join(thread.WorkspaceTypes(), ", ")))
	}
	return nil
}

func readContinuation(doc *item.DirectiveDoc, e *element) error {
	id := e.prose()
	if err := item.CheckID(id); err != nil {
		return e.errorf("<%s>: %v", e.name, err)
	}
	doc.ContinuationDirective = id
	return nil
}

// readContext reads the knowledge ids by position. Other children, such as
// <related_files>, are notes of the author.
func readContext(doc *item.DirectiveDoc, e *element) error {
	lists := map[string]*[]string{
		"system":   &doc.Context.System,
		"before":   &doc.Context.Before,
		"after":    &doc.Context.After,
		"suppress": &doc.Context.Suppress,
	}
	for _, c := range e.children {
		list, ok := lists[c.name]
		if !ok {
			continue
		}
		// A suppressed name may be a hook id, which follows the same rules.
		if err := item.CheckID(c.prose()); err != nil {
			return c.errorf("<%s>: %v", c.name, err)
		}
		*list = append(*list, c.prose())
	}
	return nil
}

// blockOf finds the block of a directive's file and reads it.
func blockOf(path string, src []byte) (*block, *element, error) {
	file, err := newSource(path, src)
	if err != nil {
		return nil, nil, err
	}
	b, err := findBlock(file)
	if err != nil {
		return nil, nil, err
	}
	root, err := b.tree()
	return b, root, err
}

// preamble splits the Markdown above the block into its first heading and the
// rest, without comments.
func preamble(text string) (title, prose string) {
	text = stripComments(text)
	title, start, end := firstHeading(text)
	if title == "" {
		return "", strings.TrimSpace(text)
	}
	return title, strings.TrimSpace(text[:start] + text[end:])
}

// stripComments removes HTML comments, the signature among them.
func stripComments(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "<!--")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, after, closed := strings.Cut(rest, "-->")
		if !closed {
			return out.String() + "<!--" + rest
		}
		text = after
	}
}

// firstHeading finds the first "# heading" outside code fences and its extent.
func firstHeading(text string) (heading string, start, end int) {
	fenced := false
	for offset := 0; offset < len(text); {
		line, _ := cutLine(text[offset:])
		next := min(offset+len(line)+1, len(text))
		marks := leadingRun(line, '#')
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case !fenced && len(marks) >= 1 && len(marks) <= 6 && strings.HasPrefix(line[len(marks):], " "):
			if h := strings.Trim(line[len(marks):], " \t#"); h != "" {
				return h, offset, next
			}
		}
		offset = next
	}
	return "", 0, 0
}
