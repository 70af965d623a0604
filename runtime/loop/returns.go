package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// The fields of directive_return beside the declared outputs.
const (
	returnStatus = "status"
	returnDetail = "error_detail"
	statusError  = "error"
)

// executeID is the primary action that older texts return with.
const executeID = "rye_execute"

// isReturn reports whether a call returns from the directive: by the tool of that name,
// or by rye_execute of its id, which older texts teach.
func (r *run) isReturn(c llm.Block) bool {
	_, is := r.returnInput(c)
	return is
}

// returnInput is what a call returns, if it returns from the directive.
func (r *run) returnInput(c llm.Block) (json.RawMessage, bool) {
	if len(r.task.doc.Outputs) == 0 {
		return nil, false
	}
	if entry, known := r.toolset.palette.Get(c.ToolName); known && entry.Kind == palette.KindReturn {
		return c.Input, true
	}
	var call struct {
		ItemID     string          `json:"item_id"`
		Parameters json.RawMessage `json:"parameters"`
		DryRun     bool            `json:"dry_run"`
	}
	if c.ToolName != executeID || json.Unmarshal(c.Input, &call) != nil || call.ItemID != action.DirectiveReturnID || call.DryRun {
		return nil, false // rye_execute says what is wrong with it
	}
	var text string
	if json.Unmarshal(call.Parameters, &text) == nil { // some models write the object as a string
		return json.RawMessage(text), true
	}
	return call.Parameters, true
}

// directiveReturn judges a directive_return: outputs that are missing or
// mistyped go back to the model, accepted ones end the thread. Of several in
// one turn the first accepted one counts. None is while there is an instruction that
// the model has not read.
func (r *run) directiveReturn(ctx context.Context, c llm.Block, already bool) (text string, accepted *ended) {
	end, err := r.judgeReturn(c)
	switch {
	case err != nil:
	case already:
		err = tool.Faultf(tool.CodeUnsupported, "the directive has returned already")
	case !reader{r}.mayEnd(ctx):
		err = waitsForMessage()
	}
	if err != nil {
		return encode(tool.AsFault(err).Body()), nil
	}
	r.record(thread.EventDirectiveReturn, transcript.DirectiveReturn{Outputs: end.outputs})
	return encode(map[string]any{"success": true}), end
}

func (r *run) judgeReturn(c llm.Block) (*ended, error) {
	var input tool.Object
	if given, _ := r.returnInput(c); len(bytes.TrimSpace(given)) > 0 {
		if err := json.Unmarshal(given, &input); err != nil {
			return nil, tool.Faultf(tool.CodeBadArguments, "the arguments of %s are not a JSON object: %w", c.ToolName, err)
		}
	}
	outputs, err := input.Map()
	if err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "the arguments of %s: %w", c.ToolName, err)
	}
	declared := map[string]item.Output{}
	for _, o := range r.task.doc.Outputs {
		declared[o.Name] = o
	}
	unwrap(outputs, declared)
	// Models send null for what they leave out.
	maps.DeleteFunc(outputs, func(_ string, v any) bool { return v == nil })
	end := &ended{doing: r.doing(), outputs: outputs}
	failed, problems := takeStatus(outputs, declared)
	if failed != "" {
		end.blocked = failed
		return end, unstorable(outputs)
	}
	problems = append(problems, outputProblems(outputs, r.task.doc.Outputs, declared)...)
	if len(problems) > 0 {
		return nil, tool.Faultf(tool.CodeInvalidInputs, "outputs not accepted: %s", strings.Join(problems, "; ")).
			With("declared_outputs", r.task.doc.Outputs).
			WithHint("call %s again with every required output", c.ToolName)
	}
	end.result = encode(outputs)
	return end, unstorable(outputs)
}

// unwrap takes outputs out of an object of that name, in which some models put them.
func unwrap(outputs map[string]any, declared map[string]item.Output) {
	const wrapping = "outputs"
	inner, is := outputs[wrapping].(map[string]any)
	if _, isOutput := declared[wrapping]; !is || isOutput {
		return
	}
	delete(outputs, wrapping)
	maps.Copy(outputs, inner)
}

// unstorable refuses outputs that thread.json cannot hold.
func unstorable(outputs map[string]any) error {
	if err := storable(outputs); err != nil {
		return tool.Faultf(tool.CodeInvalidInputs, "outputs not accepted: %w", err).
			WithHint("give such a number as a string")
	}
	return nil
}

// takeStatus removes the fields of directive_return itself from the outputs.
// Failed is set when the directive could not be carried out, and says why.
func takeStatus(outputs map[string]any, declared map[string]item.Output) (failed string, problems []string) {
	status := takeUndeclared(outputs, declared, returnStatus)
	detail, _ := takeUndeclared(outputs, declared, returnDetail).(string)
	switch status {
	case nil, "success", "completed":
		return "", nil
	case statusError:
		if detail == "" {
			detail = "the directive returned an error without saying which"
		}
		return detail, nil
	default:
		return "", []string{fmt.Sprintf("%s must be success, completed or error", returnStatus)}
	}
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
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if _, known := declared[name]; !known {
			problems = append(problems, fmt.Sprintf("%s is not declared", name))
		}
	}
	return problems
}

// typeFits checks a value as [tool.Object] decodes it against a declared type;
// without one anything fits.
func typeFits(want string, value any) error {
	var fits bool
	switch want {
	case "":
		return nil
	case "string":
		_, fits = value.(string)
	case "boolean":
		_, fits = value.(bool)
	case "integer":
		_, fits = value.(int64)
	case "number":
		switch value.(type) {
		case int64, float64:
			fits = true
		}
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
