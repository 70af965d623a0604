package chain

import "github.com/rye-mcp/rye-mcp/tools/tool"

// stepOf is what is known of an element before a plan is made.
func stepOf(e Element) Step {
	s := Step{
		Link: tool.Link{ItemID: e.ID, Space: e.Space, Path: e.Path}, Named: e.Named, Hash: e.Hash,
		Verified: e.Verified.Verdict.Status, By: e.Verified.Verdict.Fingerprint,
	}
	if s.Verified == "" {
		s.Verified = "off" // nothing is looked at
	}
	for _, below := range e.Shadows {
		s.Shadows = append(s.Shadows, tool.Link{ItemID: below.ID, Space: below.Space, Path: below.Path})
	}
	return s
}

// Links are the elements of a chain, for results.
func (c *Chain) Links() []tool.Link {
	links := make([]tool.Link, len(c.Elements))
	for i, e := range c.Elements {
		links[i] = tool.Link{ItemID: e.ID, Space: e.Space, Path: e.Path}
	}
	return links
}
