package handler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Prompts offers the directives of the project of a call.
func Prompts(projects Projects) server.Prompts { return prompts{projects} }

type prompts struct{ projects Projects }

// List is empty where there is no project: a client asks as soon as it has connected,
// and a person who has not asked for anything needs no error.
func (p prompts) List(ctx context.Context, call server.Call) ([]mcp.Prompt, error) {
	project, err := open(ctx, p.projects, call)
	if fault, ok := errors.AsType[*tool.Fault](err); ok && fault.Code == tool.CodeNoProject {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := project.Prompts.List(ctx)
	if err != nil {
		return nil, action.Fault(err)
	}
	all := make([]mcp.Prompt, len(list))
	for i, offered := range list {
		all[i] = mcp.Prompt{Name: offered.Name, Title: offered.Title, Description: offered.Description}
		for _, a := range offered.Arguments {
			all[i].Arguments = append(all[i].Arguments, mcp.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
		}
	}
	return all, nil
}

// Get has the text of the directive as what the user says, and behind it what rye-mcp
// has to say about it.
func (p prompts) Get(ctx context.Context, call server.Call, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	project, err := open(ctx, p.projects, call)
	if err != nil {
		return nil, err
	}
	text, err := project.Prompts.Get(ctx, caller(project, call), name, args)
	if err != nil {
		return nil, promptFault(err)
	}
	result := &mcp.GetPromptResult{
		Description: text.Description,
		Messages:    []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text.Text)}},
	}
	if len(text.Warnings) > 0 {
		note := mcp.NewTextContent("Note of rye-mcp: " + strings.Join(text.Warnings, "; "))
		result.Messages = append(result.Messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: note})
	}
	return result, nil
}

// promptFault is an error as a client shows it to the person who chose the prompt, in
// one line; the details are those of the cause.
func promptFault(err error) *tool.Fault {
	e, ok := errors.AsType[*prompt.Error](err)
	if !ok {
		return action.Fault(err)
	}
	fault := &tool.Fault{Code: tool.CodeBadArguments, Message: e.Error(), Err: err}
	if cause, ok := errors.AsType[*tool.Fault](e.Err); ok {
		fault.Code, fault.Details = cause.Code, maps.Clone(cause.Details)
	}
	return fault
}

// Complete proposes nothing where there is no project.
func (p prompts) Complete(ctx context.Context, call server.Call, name string, c server.Completing) (mcp.Completion, error) {
	project, err := open(ctx, p.projects, call)
	if err != nil {
		return mcp.Completion{}, nil //nolint:nilerr // somebody is typing
	}
	values, err := project.Prompts.Complete(ctx, name, c.Argument, c.Value)
	if err != nil {
		return mcp.Completion{}, promptFault(err)
	}
	return mcp.Completion{Values: slices.Clone(values.Values), HasMore: values.More}, nil
}

// Watch implements [server.Prompts].
func (p prompts) Watch(ctx context.Context, call server.Call, changed func()) (func(), error) {
	project, err := open(ctx, p.projects, call)
	if err != nil {
		return nil, err
	}
	return project.Prompts.Subscribe(changed)
}
