package cli

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// skeletons are what new items begin as.
//
//go:embed skeleton
var skeletons embed.FS

// languages are the skeletons of tools.
var languages = map[string]string{
	"python": "python.py", "bash": "bash.sh", "node": "node.mjs", "typescript": "typescript.ts", "http": "http.yaml",
}

func languageNames() []string { return slices.Sorted(maps.Keys(languages)) }

// newItem is an item to be written.
type newItem struct {
	kind  item.Kind
	id    string
	lang  string
	space item.Space
	json  bool
}

// newItemJSON is what items new writes with --json.
type newItemJSON struct {
	Success  bool         `json:"success"`
	ItemType item.Kind    `json:"item_type"`
	ItemID   string       `json:"item_id"`
	Space    item.Space   `json:"space"`
	Path     string       `json:"path"`
	SignedBy string       `json:"signed_by"`
	Hides    []item.Space `json:"hides,omitempty"`
}

func newItemsNewCommand(sys System, opts *options) *cobra.Command {
	var (
		space string
		n     newItem
	)
	cmd := &cobra.Command{
		Use:   "new directive|tool|knowledge ID",
		Short: "Write a first directive, tool or knowledge entry, valid and signed",
		Long: `Write an item that is valid, signed with your key and can be run, as a beginning:
change it, sign it again. Its id is its path below the folder of its kind, without
extension. Nothing that exists is written over.

A tool is written in Python unless --lang names another: bash, http, node or
typescript.`,
		Example: `  rye-mcp items new directive review/api
  rye-mcp items new tool text/count-words --lang typescript
  rye-mcp items new knowledge project/conventions --space user`,
		Args: usageArgs(cobra.ExactArgs(2)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, justThese
			}
			return itemTypes(), justThese
		},
		RunE: func(_ *cobra.Command, args []string) error {
			n.kind, n.id, n.space = item.Kind(args[0]), args[1], item.Space(space)
			if err := n.check(); err != nil {
				return err
			}
			return writeNewItem(sys, *opts, n)
		},
	}
	cmd.Flags().StringVar(&n.lang, "lang", "", "of a tool: "+strings.Join(languageNames(), ", ")+" (default python)")
	completeFlag(cmd, "lang", languageNames)
	cmd.Flags().StringVar(&space, "space", string(item.Project), "project or user")
	completeFlag(cmd, "space", writableSpaces)
	jsonFlag(cmd, &n.json)
	return cmd
}

// newSegment is a part of the id of a new item. It stands in its text, too: in XML, in
// YAML and in Python.
var newSegment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })

func (n *newItem) check() error {
	if !slices.Contains(item.Kinds(), n.kind) {
		return &usageError{message: fmt.Sprintf("there is no item type %q", item.Shown(string(n.kind))), try: "rye-mcp items new directive " + item.Shown(n.id)}
	}
	if !slices.Contains(writableSpaces(), string(n.space)) {
		return &usageError{message: fmt.Sprintf("no item can be written to %q", item.Shown(string(n.space))), try: "--space project, --space user"}
	}
	if err := item.CheckID(n.id); err != nil {
		return &usageError{message: err.Error(), try: fmt.Sprintf("rye-mcp items new %s my/first-%[1]s", n.kind)}
	}
	for part := range strings.SplitSeq(n.id, "/") {
		if !newSegment().MatchString(part) {
			return &usageError{message: fmt.Sprintf("%q is no name for a new item: letters, digits, -, _ and . are", item.Shown(part)), try: fmt.Sprintf("rye-mcp items new %s my/first-%[1]s", n.kind)}
		}
	}
	switch {
	case n.kind != item.Tool && n.lang != "":
		return &usageError{message: "--lang is for tools", try: "rye-mcp items new tool " + n.id + " --lang " + item.Shown(n.lang)}
	case n.kind == item.Tool && n.lang == "":
		n.lang = "python"
	}
	if _, ok := languages[n.lang]; n.kind == item.Tool && !ok {
		return &usageError{message: fmt.Sprintf("language %q is unknown", item.Shown(n.lang)), try: "--lang " + strings.Join(languageNames(), ", ")}
	}
	return nil
}

// writeNewItem writes an item that is signed, or nothing.
func writeNewItem(sys System, opts options, n newItem) error {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	key, err := sign.Load(roots.User)
	if err != nil {
		return action.Fault(err) // without a key it says how to make one
	}
	ext, content, err := n.content(sys)
	if err != nil {
		return err
	}
	as := trust.NameOf(resolve.Entry{Kind: n.kind, ID: n.id, Ext: ext})
	signed, err := sign.Attach(content, ext, as, key, sys.Now())
	if err != nil {
		return err
	}
	written, err := n.put(roots, ext, signed)
	if err != nil {
		return err
	}
	done := newItemJSON{
		Success: true, ItemType: n.kind, ItemID: n.id, Space: n.space, Path: written.Path, SignedBy: key.Fingerprint(),
		Hides: hiddenBy(roots, n),
	}
	return conclude(sys, n.json, done, true, func() error { return writeCreated(sys, done) })
}

// content is the text of the item, with its names in it.
func (n *newItem) content(sys System) (ext string, content []byte, err error) {
	name := string(n.kind) + ".md"
	if n.kind == item.Tool {
		name = languages[n.lang]
	}
	raw, err := skeletons.ReadFile("skeleton/" + name)
	if err != nil {
		return "", nil, err
	}
	category := path.Dir(n.id)
	if category == "." {
		category = "general"
	}
	author := sys.Getenv("USER")
	if !newSegment().MatchString(author) {
		author = "you"
	}
	text := strings.NewReplacer("@NAME@", path.Base(n.id), "@TITLE@", titleOf(path.Base(n.id)), "@CATEGORY@", category, "@AUTHOR@", author).
		Replace(string(raw))
	return path.Ext(name), []byte(text), nil
}

// titleOf makes words of a name.
func titleOf(name string) string {
	words := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_.", r) }), " ")
	first, size := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(first)) + words[size:]
}

func (n *newItem) put(roots resolve.Roots, ext string, content []byte) (itemfile.Written, error) {
	folder, err := openItems(roots, n.space, n.kind)
	if err != nil {
		return itemfile.Written{}, err
	}
	defer func() { _ = folder.Close() }() // the file is synced by then
	written, err := folder.Put(n.id, ext, content, time.Time{})
	if taken, ok := errors.AsType[*itemfile.TakenError](err); ok {
		return written, tool.Faultf(tool.CodeUnsupported, "%w", taken).
			WithTry("another id, or rye-mcp items show %s --type %s", n.id, n.kind)
	}
	return written, unwritable(err)
}

// openItems opens the folder of a kind in the project or the user space, which is made
// with its first item.
func openItems(roots resolve.Roots, space item.Space, kind item.Kind) (*itemfile.Folder, error) {
	dir := roots.Project
	if space == item.User {
		dir = roots.User
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, unwritable(err)
		}
	}
	folder, err := itemfile.Open(dir, kind)
	return folder, unwritable(err)
}

// hiddenBy lists the spaces in which an item of the same id is found no more.
func hiddenBy(roots resolve.Roots, n newItem) []item.Space {
	found, err := resolve.New(roots).Find(n.kind, n.id)
	if err != nil || found.Space != n.space {
		return nil
	}
	var spaces []item.Space
	for _, s := range found.Shadows {
		spaces = append(spaces, s.Space)
	}
	return spaces
}

func writeCreated(sys System, done newItemJSON) error {
	_, err := fmt.Fprintf(sys.Stdout, "wrote   %s\nsigned  with your key %s\n", plain.Line(done.Path), done.SignedBy)
	for _, space := range done.Hides {
		if err == nil {
			_, err = fmt.Fprintf(sys.Stdout, "hides   that of the %s space\n", space)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(sys.Stdout, "\nChange it, then: rye-mcp validate %s && rye-mcp sign --type %s %[1]s\n", done.ItemID, done.ItemType)
	}
	return err
}
