package web

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/rye-mcp/rye-mcp/tools/netguard"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// page reads a page. One that no browser would show, because it nests too deep, is
// shown as the text between its tags.
func (d *document) page(source string, at *url.URL, format string) {
	if len(source) > maxHTML {
		source = strings.ToValidUTF8(source[:maxHTML], "")
		d.notes = append(d.notes, fmt.Sprintf("only the first %d MiB of the page were read", maxHTML>>20))
	}
	text, err := tool.Guarded("rye/web/fetch", func() (any, error) {
		root, err := html.Parse(strings.NewReader(source))
		if err != nil {
			return "", err
		}
		clean := cleaning{at: baseOf(root, at)}
		clean.prune(root)
		d.title = clean.title
		return render(mainOf(root), format)
	})
	if shown, ok := text.(string); ok && err == nil {
		d.text = shown
		return
	}
	d.text = betweenTags(source)
	d.notes = append(d.notes, "the page could not be read as HTML; this is the text between its tags")
}

// render writes what is left of a page.
func render(node *html.Node, format string) (string, error) {
	switch format {
	case formatText:
		var t plainText
		t.write(node)
		return t.String(), nil
	case formatHTML:
		var b strings.Builder
		err := html.Render(&b, node)
		return b.String(), err
	}
	// Escaping takes time that grows with the square of the text, and a model reads
	// the text as it is.
	markdown := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithNewlineBehavior(table.NewlineBehaviorPreserve)),
	))
	flatten(node, 0, 0)
	text, err := markdown.ConvertNode(node)
	return breaks().ReplaceAllString(string(text), "<br />"), err
}

// breaks are the ends of lines in the cell of a table: the converter leaves several
// between two blocks.
var breaks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` *(?:<br />)+`) })

// baseOf is what relative addresses of a page are relative to.
func baseOf(root *html.Node, at *url.URL) *url.URL {
	for n := range root.Descendants() {
		if n.DataAtom != atom.Base {
			continue
		}
		if to, err := at.Parse(attr(n, "href")); err == nil && (to.Scheme == schemeHTTP || to.Scheme == schemeHTTPS) {
			return to
		}
		break
	}
	return at
}

// cleaning takes out of a page what nobody sees who looks at it, and what is no text.
type cleaning struct {
	at    *url.URL
	title string
}

func (c *cleaning) prune(n *html.Node) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		switch {
		case child.DataAtom == atom.Title && child.Namespace == "" && c.title == "" && child.FirstChild != nil:
			c.title = child.FirstChild.Data
			n.RemoveChild(child)
		case child.Type == html.CommentNode || child.Type == html.DoctypeNode || child.Type == html.ElementNode && hidden(child):
			n.RemoveChild(child)
		default:
			c.attributes(child)
			c.prune(child)
		}
		child = next
	}
}

// hidden reports whether an element is not shown, or not text.
func hidden(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Object, atom.Embed, atom.Svg, atom.Canvas, atom.Math,
		atom.Audio, atom.Video, atom.Input, atom.Textarea, atom.Select, atom.Button, atom.Dialog, atom.Link, atom.Meta, atom.Base:
		return true
	default:
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		case "style":
			if invisible(a.Val) {
				return true
			}
		}
	}
	return false
}

// invisible reports whether a style attribute hides what it is about.
func invisible(style string) bool {
	style = strings.ToLower(strings.Join(strings.Fields(style), "")) + ";"
	for _, how := range []string{"display:none", "visibility:hidden", "font-size:0;", "font-size:0px;", "opacity:0;"} {
		if strings.Contains(style, how) {
			return true
		}
	}
	return false
}

// kept reports whether an attribute says something to a reader. A class names the
// language of code.
func kept(n *html.Node, attribute string) bool {
	switch attribute {
	case "href", "src", "alt", "title", "start", "lang":
		return true
	case "class":
		return n.DataAtom == atom.Code || n.DataAtom == atom.Pre
	}
	return false
}

// attributes leaves of an element's attributes those that a reader needs, with
// addresses of the web only.
func (c *cleaning) attributes(n *html.Node) {
	left := n.Attr[:0]
	for _, a := range n.Attr {
		switch {
		case !kept(n, a.Key):
			continue
		case a.Key == "href" || a.Key == "src":
			to, err := c.at.Parse(strings.TrimSpace(a.Val))
			if err != nil || to.Scheme != schemeHTTP && to.Scheme != schemeHTTPS && to.Scheme != "mailto" {
				continue
			}
			if a.Val = to.String(); len(a.Val) > netguard.MaxURL {
				continue
			}
		}
		left = append(left, a)
	}
	n.Attr = left
}

// leastMain is how much text a part of a page must have to stand for all of it.
const leastMain = 200

// mainOf is the part of a page that it calls its main one, else its body.
func mainOf(root *html.Node) *html.Node {
	body, found := root, (*html.Node)(nil)
	for n := range root.Descendants() {
		switch {
		case n.DataAtom == atom.Body && body == root:
			body = n
		case n.DataAtom == atom.Main && found == nil:
			found = n
		}
	}
	if found != nil {
		var t plainText
		if t.write(found); len(t.String()) >= leastMain {
			return found
		}
	}
	return body
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// betweenTags is the text of a source that is not taken apart.
func betweenTags(source string) string {
	var b strings.Builder
	tokens, skip := html.NewTokenizer(strings.NewReader(source)), false
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.StartTagToken, html.EndTagToken:
			name, _ := tokens.TagName()
			if a := atom.Lookup(name); a == atom.Script || a == atom.Style {
				skip = kind == html.StartTagToken
			}
		case html.TextToken:
			if text := strings.TrimSpace(string(tokens.Text())); text != "" && !skip {
				b.WriteString(text + "\n")
			}
		default:
		}
	}
}
