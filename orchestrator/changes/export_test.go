package changes

// Listening is how many listen.
func (f *Feed) Listening() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}
