package validate

// checkRetry finds directives whose threads are never tried again although they say so.
func checkRetry(l *list, d *directive) {
	if d.doc.Retry == nil {
		return
	}
	line := d.line("metadata/retry")
	if d.doc.Retry.Attempts == 1 {
		l.warnf(CodeRetryIdle, line, "attempts counts the first thread too: 2 tries once more", "a thread of one attempt is never tried again")
	}
	for _, in := range d.doc.Inputs {
		if in.Secret {
			l.warnf(CodeRetryIdle, line, "leave <retry> out, or take the secret from the user's settings",
				"a thread that is given the secret input %s is never tried again: its value is kept nowhere", in.Name)
		}
	}
}
