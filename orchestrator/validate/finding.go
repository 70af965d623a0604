package validate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// Code names a kind of finding. Codes are added, never changed.
type Code string

// Findings in any item.
const (
	CodeUnreadable Code = "unreadable"
	CodeParse      Code = "parse"
	CodeSignature  Code = "signature"
	CodeShadowed   Code = "shadowed"
)

// Findings in directives.
const (
	CodeInputUndeclared Code = "input_undeclared"
	CodeInputUnused     Code = "input_unused"
	CodeUnknownName     Code = "unknown_name"
	CodeForeign         Code = "foreign" // of another program's item: what has no counterpart
	CodeEnvUnknown      Code = "env_unknown"
	CodePlaceholder     Code = "placeholder"

	CodeExtends           Code = "extends"
	CodeExtendsMissing    Code = "extends_missing"
	CodeExtendsCycle      Code = "extends_cycle"
	CodeExtendsLong       Code = "extends_long"
	CodeContextMissing    Code = "context_missing"
	CodeContextBroken     Code = "context_broken"
	CodeContextSuppressed Code = "context_suppressed"
	CodeContextTwice      Code = "context_twice"
	CodeContextData       Code = "context_data"
	CodeSuppressUnknown   Code = "suppress_unknown"

	CodeHookEvent      Code = "hook_event"
	CodeHookCondition  Code = "hook_condition"
	CodeHookVerdict    Code = "hook_verdict"
	CodeHookAction     Code = "hook_action"
	CodeHookTwice      Code = "hook_twice"
	CodeHookItem       Code = "hook_item"
	CodeHookCapability Code = "hook_capability"
	CodeHookSuppressed Code = "hook_suppressed"
	CodeHookData       Code = "hook_data"

	CodeCapabilityUnmatched Code = "capability_unmatched"
	CodeCapabilityIdle      Code = "capability_idle"
	CodeRiskBlocked         Code = "risk_blocked"
	CodeRiskUnacknowledged  Code = "risk_unacknowledged"
	CodeRiskUnknown         Code = "risk_unknown"

	CodeLimitZero     Code = "limit_zero"
	CodeLimitSpend    Code = "limit_spend"
	CodeLimitTokens   Code = "limit_tokens"
	CodeLimitWindow   Code = "limit_window"
	CodeModelUnknown  Code = "model_unknown"
	CodeModelReplaced Code = "model_replaced"
	CodeModelFallback Code = "model_fallback"
	CodeModelUnpriced Code = "model_unpriced"
	CodeContinuation  Code = "continuation_missing"
	CodeRetryIdle     Code = "retry_idle"

	CodeStepItem       Code = "step_item"
	CodeStepCapability Code = "step_capability"
	CodeCallName       Code = "call_name"
)

// Findings in tools, knowledge and settings.
const (
	CodeSchemaNone    Code = "schema_none"
	CodeSchemaDynamic Code = "schema_dynamic"
	CodeSchemaInvalid Code = "schema_invalid"
	CodeMetadata      Code = "metadata_dynamic"
	CodeKeyUnknown    Code = "key_unknown"
	CodeNetwork       Code = "network_undeclared"
	CodeToolInvalid   Code = "tool_invalid"
	CodeExecutor      Code = "executor_unknown"
	CodeReference     Code = "reference_missing"
	CodeSettings      Code = "settings"
	CodeSettingsNoUse Code = "settings_ignored"
)

// Finding is one thing that is wrong.
type Finding struct {
	Level   Level      `json:"level"`
	Code    Code       `json:"code"`
	Type    item.Kind  `json:"type,omitempty"` // empty: settings
	Item    string     `json:"item,omitempty"`
	Space   item.Space `json:"space,omitempty"`
	Path    string     `json:"path"`
	Line    int        `json:"line,omitempty"` // from 1; 0: the file as a whole
	Message string     `json:"message"`
	Try     string     `json:"try,omitempty"`
}

// Place is path:line.
func (f Finding) Place() string {
	if f.Line == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s:%d", f.Path, f.Line)
}

// Report is what was found, by file and line.
type Report struct {
	Success  bool      `json:"success"` // there are no errors
	Items    int       `json:"items"`   // that were looked at
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
	// Requests are what the first requests of the directives cost.
	Requests []Request `json:"first_requests,omitempty"`
}

// Request is what the first request of a thread of a directive costs, without the
// values of inputs that have no default.
type Request struct {
	Item string `json:"item"`
	Path string `json:"path"`
	opening.Cost
}

// report counts and sorts findings.
func report(items int, findings []Finding, first []Request) Report {
	r := Report{Items: items, Findings: findings, Requests: first}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	r.Findings = slices.Compact(r.Findings)
	for _, f := range r.Findings {
		if f.Level == Error {
			r.Errors++
		} else {
			r.Warnings++
		}
	}
	r.Success = r.Errors == 0
	return r
}

// list collects the findings of one item.
type list struct {
	about Finding // what all of them have
	found []Finding
	first []Request
}

// errorf adds an error on a line. Try says what to do, and may be empty.
func (l *list) errorf(code Code, line int, try, format string, args ...any) {
	l.add(Error, code, line, try, fmt.Sprintf(format, args...))
}

func (l *list) warnf(code Code, line int, try, format string, args ...any) {
	l.add(Warning, code, line, try, fmt.Sprintf(format, args...))
}

func (l *list) add(level Level, code Code, line int, try, message string) {
	f := l.about
	f.Level, f.Code, f.Line, f.Try, f.Message = level, code, line, cmp.Or(try, usualTry(code)), message
	l.found = append(l.found, f)
}

// usualTry is what to do about a finding that has no advice of its own.
func usualTry(code Code) string {
	switch code {
	case CodeParse, CodeHookEvent, CodeHookCondition, CodeHookVerdict, CodeHookAction, CodeContextBroken, CodeSchemaInvalid, CodeSettings:
		return "mend the line"
	case CodeUnreadable:
		return "make the file readable"
	case CodeSignature:
		return "rye-mcp sign"
	case CodePlaceholder:
		return "remove it"
	case CodeForeign:
		return "mend it, or put a directive of the same id into .ai/directives, which goes before it"
	case CodeUnknownName:
		return "mend the name, move it to where it belongs, or remove it"
	case CodeExtends, CodeExtendsCycle, CodeExtendsLong, CodeExtendsMissing:
		return "mend the attribute extends of one of them"
	case CodeContextMissing, CodeHookItem, CodeContinuation, CodeStepItem, CodeReference:
		return "write the item, or name another"
	case CodeSuppressUnknown, CodeCapabilityUnmatched, CodeCapabilityIdle, CodeSettingsNoUse, CodeCallName:
		return "remove it, or mend the name"
	case CodeModelUnknown, CodeModelReplaced, CodeModelFallback:
		return "name a model or tier of your providers; rye-mcp config show lists them"
	case CodeExecutor:
		return "run it through rye/bash, or use a built-in tool"
	default:
		return "mend it"
	}
}
