package prompt

import (
	"errors"

	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Fault tells an error of [Composer.Compose] to a model; nil for nil.
func Fault(err error) *tool.Fault {
	f := action.Fault(err)
	if errors.Is(err, ErrCycle) || errors.Is(err, ErrChainTooLong) {
		f = tool.Faultf(tool.CodeInvalidItem, "%w", err).
			WithHint("mend the extends attribute of one of these directives, or the hook that routes the first of them")
	}
	if chain, ok := errors.AsType[*ChainError](err); ok {
		f = f.With("extends_chain", chain.Chain)
	}
	return f
}
