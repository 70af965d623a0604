package parse

import "strings"

// Element is an element of the xml block of a directive.
type Element struct {
	// Path names the elements down to it, below the root: metadata/context/before.
	// That of the root is empty.
	Path string
	Name string // its attribute name
	Text string // as the document has it, without the space around
	Line int    // of its start tag in the file, from 1
}

// Outline says where the parts of a directive stand in its file.
type Outline struct {
	Elements []Element // in the order of the file, the root first
	Body     int       // the line below the block, from 1
}

// OutlineOf reads the outline of a file that [Directive] reads too.
func OutlineOf(path string, src []byte) (*Outline, error) {
	block, root, err := blockOf(path, src)
	if err != nil {
		return nil, err
	}
	out := &Outline{Body: block.line + strings.Count(block.text, "\n") + 1}
	out.add(root, "")
	return out, nil
}

func (o *Outline) add(e *element, path string) {
	name, _ := e.attr("name")
	o.Elements = append(o.Elements, Element{Path: path, Name: name, Text: e.prose(), Line: e.line})
	for _, c := range e.children {
		o.add(c, strings.TrimPrefix(path+"/"+c.name, "/"))
	}
}
