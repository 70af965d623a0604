package rag

// WithTests sets how many vectors a new chapter has, and who is told of the steps of writing
// files of codes.
func (o Options) WithTests(chapter int, step func(string)) Options {
	o.chapter, o.step = chapter, step
	return o
}
