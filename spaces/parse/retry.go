package parse

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// The attributes of <retry>. Those of the back-off have the names of the settings for
// calls of a model, see config.RetryPolicy.
const (
	retryAttempts = "attempts"
	retryBackoff  = "backoff"
	retryBase     = "base"
	retryMax      = "max"
	retryDelay    = "delay"
	retryOn       = "on"
)

func retryAttrs() []string {
	return []string{retryAttempts, retryBackoff, retryBase, retryMax, retryDelay, retryOn}
}

// The defaults of <retry>, in seconds. A thread has repeated the call of its model for
// about a minute by then, see resilience.yaml.
const (
	defaultBase  = 30
	defaultMax   = 3600
	defaultDelay = 60
)

// readRetry reads when threads of the directive are tried again. One that is not
// understood would spend money that nobody meant to, so nothing here is let pass.
func readRetry(doc *item.DirectiveDoc, e *element) (err error) {
	if len(e.children) > 0 || e.prose() != "" {
		return e.errorf("<retry> holds nothing; its attributes are %s", said(strings.Join(retryAttrs(), ", ")))
	}
	seen := map[string]bool{}
	for _, a := range e.attrs {
		if a.Name.Space != "" || !slices.Contains(retryAttrs(), a.Name.Local) {
			return e.errorf("<retry> knows no attribute %q; valid are %s", a.Name.Local, said(strings.Join(retryAttrs(), ", ")))
		}
		if seen[a.Name.Local] {
			return e.errorf("<retry> has the attribute %s twice", a.Name.Local)
		}
		seen[a.Name.Local] = true
	}
	p := &thread.RetryPolicy{}
	if p.Attempts, err = readAttempts(e); err != nil {
		return err
	}
	if err := readBackoff(p, e); err != nil {
		return err
	}
	if p.On, err = readRetryOn(e); err != nil {
		return err
	}
	doc.Retry = p
	return nil
}

func readAttempts(e *element) (int, error) {
	text, _ := e.attr(retryAttempts)
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > thread.MaxAttempts {
		return 0, e.errorf("<retry attempts=%q> must be a whole number from 1 to %d: how many attempts there may be, with the first",
			text, thread.MaxAttempts)
	}
	return n, nil
}

func readBackoff(p *thread.RetryPolicy, e *element) (err error) {
	text, given := e.attr(retryBackoff)
	p.Backoff = strings.TrimSpace(text)
	if !given {
		p.Backoff = thread.BackoffExponential
	}
	switch p.Backoff {
	case thread.BackoffExponential:
		if err := unfit(e, p.Backoff, retryDelay); err != nil {
			return err
		}
		if p.BaseSeconds, err = readSeconds(e, retryBase, defaultBase); err != nil {
			return err
		}
		if p.MaxSeconds, err = readSeconds(e, retryMax, max(defaultMax, p.BaseSeconds)); err != nil {
			return err
		}
		if p.MaxSeconds < p.BaseSeconds {
			return e.errorf("<retry max=%q> is less than base, %v seconds", strconv.FormatFloat(p.MaxSeconds, 'f', -1, 64), p.BaseSeconds)
		}
		return nil
	case thread.BackoffFixed:
		if err := unfit(e, p.Backoff, retryBase, retryMax); err != nil {
			return err
		}
		p.BaseSeconds, err = readSeconds(e, retryDelay, defaultDelay)
		return err
	}
	return e.errorf(`<retry backoff=%q> is unknown; valid are %s, as in backoff="fixed" delay="60"`, text,
		said(strings.Join(thread.Backoffs(), ", ")))
}

// unfit refuses attributes of the other back-off.
func unfit(e *element, backoff string, names ...string) error {
	for _, name := range names {
		if _, given := e.attr(name); given {
			return e.errorf("<retry> with backoff %s has no %s", backoff, name)
		}
	}
	return nil
}

func readSeconds(e *element, name string, otherwise float64) (float64, error) {
	text, given := e.attr(name)
	if !given {
		return otherwise, nil
	}
	most := thread.MaxRetryGap.Seconds()
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(seconds > 0 && seconds <= most) { // NaN neither
		return 0, e.errorf("<retry %s=%q> must be a number of seconds, more than 0 and at most %v", name, text, most)
	}
	return seconds, nil
}

func readRetryOn(e *element) ([]string, error) {
	text, given := e.attr(retryOn)
	if !given {
		return []string{thread.RetryProvider, thread.RetryCrash}, nil
	}
	var on []string
	for _, class := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' }) {
		if !slices.Contains(thread.RetryClasses(), class) {
			return nil, e.errorf("<retry on=%q>: %q is unknown; valid are %s", text, class, said(strings.Join(thread.RetryClasses(), ", ")))
		}
		if !slices.Contains(on, class) {
			on = append(on, class)
		}
	}
	if len(on) == 0 {
		return nil, e.errorf("<retry on=%q> names no failure; valid are %s", text, said(strings.Join(thread.RetryClasses(), ", ")))
	}
	return on, nil
}
