package plan

import (
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// retries is when threads of the plan are tried again: as the directive says, and never
// where an input is secret. Its value is kept nowhere, so the next attempt would not have it.
func (p *Plan) retries() *thread.RetryPolicy {
	if len(p.Secrets) > 0 {
		return nil
	}
	return p.Doc.Retry
}

// warnOfRetry says why a thread of the plan is not tried again although its directive
// says <retry>.
func (p *Plan) warnOfRetry() {
	if p.Doc.Retry != nil && p.retries() == nil {
		p.Warnings = append(p.Warnings, "it is not tried again should it fail, although its directive says <retry>: "+
			"the values of its secret inputs are kept nowhere")
	}
}
