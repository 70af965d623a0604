// Package keys is the tool rye/core/keys. A model can look at the keys that count
// here. Whose signature counts, and in whose name things are signed, is for a person
// to decide: a thread that could make, trust or remove a key would decide what it may
// run itself.
package keys

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	toolID     = "rye/core/keys"
	actionList = "list"
	actionShow = "show"
)

// refuse refuses an action that is a person's; nil for others.
func refuse(action string) *tool.Fault {
	f := tool.Faultf(tool.CodePermissionDenied, "%s: keys are for a person to decide about; a model can list and show them", action).
		WithHint("Tell the person what you need, and why.")
	switch action {
	case "generate":
		return f.WithTry("rye-mcp keys generate")
	case "trust":
		return f.WithTry("compare the fingerprint with its owner, then rye-mcp keys trust FILE")
	case "import":
		return f.WithTry("put the key where rye-mcp keys generate would make it")
	case "remove", "revoke":
		return f.WithTry("delete the document of the key, whose path rye-mcp keys list names")
	}
	return nil
}

// Deps is what the tool needs.
type Deps struct {
	Keyring func() (*trust.Keyring, error)
}

type input struct {
	Action      string `json:"action,omitempty" default:"list" jsonschema:"list or show"`
	Space       string `json:"space,omitempty" enum:"project,user,system"`
	Owner       string `json:"owner,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty" jsonschema:"to show; default: the person's own"`
	Force       bool   `json:"force,omitempty"`
}

type key struct {
	Fingerprint string      `json:"fingerprint"`
	Owner       string      `json:"owner,omitempty"`
	State       trust.State `json:"state"`
	Space       item.Space  `json:"space,omitempty"`
	By          string      `json:"vouched_by,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	PEM         string      `json:"pem,omitempty"`
}

type output struct {
	Keys []key  `json:"keys"`
	Note string `json:"note,omitempty"`
}

// New returns the tool.
func New(deps Deps) tool.Tool {
	return tool.New(tool.Definition{
		ID:          toolID,
		Description: "List or show signing keys: whose they are, and whether they are trusted. Nothing else: keys are for the person.",
		ReadOnly:    true,
	}, deps.look)
}

func (d Deps) look(_ context.Context, _ tool.Env, in input) (any, error) {
	action := strings.ToLower(in.Action)
	if action == "info" {
		action = actionShow
	}
	if refusal := refuse(action); refusal != nil {
		return nil, refusal
	}
	if action != actionList && action != actionShow || in.Force {
		return nil, tool.Faultf(tool.CodeBadArguments, "a model can list and show keys, and nothing else").
			With("valid_actions", []string{actionList, actionShow}).WithHint("Call %s with action list.", toolID)
	}
	keyring, err := d.Keyring()
	if err != nil {
		return nil, err
	}
	entries := keyring.List()
	if action == actionShow {
		if entries, err = named(keyring, in.Fingerprint); err != nil {
			return nil, err
		}
	}
	out := output{Keys: []key{}}
	for _, e := range entries {
		if in.Space != "" && string(e.Space) != in.Space || in.Owner != "" && e.Owner != in.Owner {
			continue
		}
		out.Keys = append(out.Keys, keyOf(e, action == actionShow))
	}
	if !slices.ContainsFunc(keyring.List(), func(e trust.Entry) bool { return e.State == trust.Own }) {
		out.Note = "the person has no signing key yet"
	}
	return out, nil
}

// named are the entries of one key.
func named(keyring *trust.Keyring, fingerprint string) ([]trust.Entry, error) {
	if fingerprint == "" {
		own := slices.DeleteFunc(keyring.List(), func(e trust.Entry) bool { return e.State != trust.Own })
		if len(own) == 0 {
			return nil, tool.Faultf(tool.CodeNoKey, "the person has no signing key yet").WithHint("Tell the person.").WithTry("rye-mcp keys generate")
		}
		return own, nil
	}
	entries, err := keyring.Show(fingerprint)
	switch {
	case errors.Is(err, trust.ErrUnknownKey):
		return nil, tool.Faultf(tool.CodeNotFound, "no such key is known here").WithHint("Call %s with action list.", toolID)
	case errors.Is(err, trust.ErrAmbiguousKey):
		return nil, tool.Faultf(tool.CodeAmbiguous, "several keys begin like that").WithHint("Give more digits.")
	}
	return entries, err
}

// keyOf is a key as a model sees it: of what documents say, only what has the form
// of a name.
func keyOf(e trust.Entry, whole bool) key {
	k := key{Fingerprint: item.Shown(e.Fingerprint), Owner: item.Shown(e.Owner), State: e.State, Space: e.Space, By: item.Shown(e.By), Reason: e.Reason}
	if whole && e.Key != nil {
		k.PEM = string(e.Key.PEM())
	}
	return k
}
