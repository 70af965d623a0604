package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The fields of directive_return beside the declared outputs.
const (
	returnStatus = "status"
	returnDetail = "error_detail"
	statusError  = "error"
)

type returned struct {
	block llm.Block
	ended *ended // set when the outputs were accepted
}

// directiveReturn judges a directive_return: outputs that are missing or
// mistyped go back to the model, accepted ones end the thread. Of several in
// one turn the first accepted one counts.
func (r *run) directiveReturn(call llm.Block, open bool) returned {
	r.record(thread.EventToolCallStart, transcript.ToolCallStart{
		Turn: r.cost.Turns, CallID: call.ToolCallID, Tool: call.ToolName, Input: transcript.Input(call.Input),
	})
	var result returned
	var answer any
	end, err := r.judgeReturn(call)
	switch {
	case err != nil:
		answer = tool.AsFault(err).Body()
	case !open:
		answer = tool.Faultf(tool.CodeUnsupported, "the directive has returned already").Body()
	default:
		result.ended = end
		answer = map[string]any{"success": true}
		r.record(thread.EventDirectiveReturn, transcript.DirectiveReturn{Outputs: end.outputs})
	}
	result.block = llm.Block{
		Type: llm.ToolResultBlock, ToolCallID: call.ToolCallID, Text: encode(answer), IsError: result.ended == nil,
	}
	r.record(thread.EventToolCallResult, transcript.ToolCallResult{
		Turn: r.cost.Turns, CallID: call.ToolCallID, Tool: call.ToolName,
		Text: result.block.Text, IsError: result.block.IsError,
	})
	return result
}

func (r *run) judgeReturn(call llm.Block) (*ended, error) {
	outputs := map[string]any{}
	if err := json.Unmarshal(call.Input, &outputs); err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "the arguments of %s are not a JSON object: %w", call.ToolName, err)
	}
	declared := map[string]item.Output{}
	for _, o := range r.task.doc.Outputs {
		declared[o.Name] = o
	}
	end := &ended{doing: r.doing(), outputs: outputs}
	status, _ := takeUndeclared(outputs, declared, returnStatus).(string)
	detail, _ := takeUndeclared(outputs, declared, returnDetail).(string)
	if status == statusError {
		end.blocked = detail
		if end.blocked == "" {
			end.blocked = "the directive returned an error without saying which"
		}
		return end, nil
	}
	if problems := outputProblems(outputs, r.task.doc.Outputs, declared); len(problems) > 0 {
		return nil, tool.Faultf(tool.CodeInvalidInputs, "outputs not accepted: %s", strings.Join(problems, "; ")).
			With("declared_outputs", r.task.doc.Outputs).
			WithHint("call %s again with every required output", call.ToolName)
	}
	end.result = returnText(outputs)
	return end, nil
}

// takeUndeclared removes a field that belongs to directive_return itself,
// unless the directive declares an output of that name.
func takeUndeclared(outputs map[string]any, declared map[string]item.Output, name string) any {
	if _, isOutput := declared[name]; isOutput {
		return nil
	}
	value := outputs[name]
	delete(outputs, name)
	return value
}

func outputProblems(outputs map[string]any, order []item.Output, declared map[string]item.Output) []string {
	var problems []string
	for _, o := range order {
		value, given := outputs[o.Name]
		switch {
		case !given && o.Required:
			problems = append(problems, fmt.Sprintf("%s is missing", o.Name))
		case given:
			if err := typeFits(o.Type, value); err != nil {
				problems = append(problems, fmt.Sprintf("%s %s", o.Name, err))
			}
		}
	}
	for name := range outputs {
		if _, known := declared[name]; !known {
			problems = append(problems, fmt.Sprintf("%s is not declared", name))
		}
	}
	return problems
}

// typeFits checks a value decoded from JSON against a declared type; without
// one anything fits.
func typeFits(want string, value any) error {
	var fits bool
	switch want {
	case "":
		return nil
	case "string":
		_, fits = value.(string)
	case "boolean":
		_, fits = value.(bool)
	case "number":
		_, fits = value.(float64)
	case "integer":
		n, isNumber := value.(float64)
		fits = isNumber && n == float64(int64(n))
	case "array":
		_, fits = value.([]any)
	case "object":
		_, fits = value.(map[string]any)
	}
	if fits {
		return nil
	}
	return errors.New("must be of type " + want)
}

// returnText is the result text of a thread that returned outputs: the outputs
// as JSON.
func returnText(outputs map[string]any) string { return encode(outputs) }
