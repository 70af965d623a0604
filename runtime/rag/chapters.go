package rag

// closeChapters is called at the end of each transaction that has changed vectors.
func (w *writer) closeChapters() error { return nil }
