package expr

// CouldHold reports whether the condition can be true of data in which nobody knows
// yet what stands at the open paths. It may say so of a condition that looks at an
// open path twice and contradicts itself.
func (c Condition) CouldHold(data any, open func(path string) bool) bool {
	if c.node == nil {
		return true
	}
	could, _ := chances(c.node, data, open)
	return could
}

// chances reports whether a part of a condition can be true, and whether it can be
// false.
func chances(n node, data any, open func(path string) bool) (holds, fails bool) {
	switch n := n.(type) {
	case all:
		holds = true
		for _, part := range n {
			h, f := chances(part, data, open)
			holds, fails = holds && h, fails || f
		}
		return holds, fails
	case anyOf:
		fails = true
		for _, part := range n {
			h, f := chances(part, data, open)
			holds, fails = holds || h, fails && f
		}
		return holds, fails
	case negation:
		h, f := chances(n.of, data, open)
		return f, h
	case test:
		if open(n.path.String()) || n.right.path != nil && open(n.right.path.String()) {
			return n.sides(data, open), true
		}
	}
	is := n.eval(data)
	return is, !is
}

// sides reports whether what a test compares is open or there on both sides: data that
// are not there make every comparison false.
func (t test) sides(data any, open func(path string) bool) bool {
	there := func(p path) bool {
		_, found := p.in(data)
		return found || open(p.String())
	}
	return there(t.path) && (t.right.path == nil || there(t.right.path))
}
