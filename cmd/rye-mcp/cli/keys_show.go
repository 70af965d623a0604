package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// keyJSON is a key as the commands about keys write it with --json.
type keyJSON struct {
	Fingerprint string      `json:"fingerprint"`
	Owner       string      `json:"owner"`
	State       trust.State `json:"state"`
	Reason      string      `json:"reason,omitempty"` // why it is untrusted
	By          string      `json:"by,omitempty"`     // fingerprint of the key that vouches for it
	Version     string      `json:"version,omitempty"`
	Attestation string      `json:"attestation,omitempty"`
	Space       item.Space  `json:"space"`
	Path        string      `json:"path"`
	PEM         string      `json:"pem"`
	Notes       []string    `json:"notes,omitempty"` // what of its document is not used
}

func keyOf(e trust.Entry) keyJSON {
	return keyJSON{
		Fingerprint: e.Fingerprint, Owner: e.Owner, State: e.State, Reason: e.Reason, By: e.By, Version: e.Version,
		Attestation: e.Attestation, Space: e.Space, Path: e.Path, PEM: string(e.Key.PEM()), Notes: e.Notes,
	}
}

func keysOf(entries []trust.Entry) []keyJSON {
	keys := make([]keyJSON, len(entries))
	for i, e := range entries {
		keys[i] = keyOf(e)
	}
	return keys
}

// keyListJSON is what keys list writes with --json.
type keyListJSON struct {
	Keys     []keyJSON        `json:"keys"`
	Problems []keyProblemJSON `json:"problems"`
}

type keyProblemJSON struct {
	Space  item.Space `json:"space"`
	Path   string     `json:"path"`
	Reason string     `json:"reason"`
	Mend   string     `json:"mend,omitempty"` // a command
}

func newKeysListCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List your key and those that documents vouch for",
		Long: `List your own key and those that the trusted-key documents of project, user and
system space are about, with what each is worth and why.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(*cobra.Command, []string) error {
			keyring, err := openKeyring(sys, *opts)
			if err != nil {
				return err
			}
			if !asJSON {
				return writeKeys(newDisplay(sys, *opts), keyring)
			}
			list := keyListJSON{Keys: keysOf(keyring.List()), Problems: []keyProblemJSON{}}
			for _, p := range keyring.Problems() {
				list.Problems = append(list.Problems, keyProblemJSON(p))
			}
			return writeJSON(sys.Stdout, list)
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func writeKeys(d display, keyring *trust.Keyring) error {
	t := table{header: []string{"FINGERPRINT", "STATE", "OWNER", "SPACE", "DOCUMENT"}}
	for _, e := range keyring.List() {
		where := e.Path
		if e.Reason != "" {
			where += " (" + e.Reason + ")"
		}
		t.add(text(e.Fingerprint), cell{string(e.State), keyColor(e.State)}, text(e.Owner), text(string(e.Space)), text(where))
	}
	d.width = 0 // reasons and paths are there to be read whole
	if len(t.rows) > 0 {
		if err := t.write(d); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(keyring.List(), func(e trust.Entry) bool { return e.State == trust.Own }) {
		if _, err := fmt.Fprintln(d.out, "You have no signing key; rye-mcp keys generate makes one."); err != nil {
			return err
		}
	}
	for _, e := range keyring.List() {
		for _, note := range e.Notes {
			if _, err := fmt.Fprintf(d.out, "note: %s: %s\n", plain.Line(e.Path), plain.Line(note)); err != nil {
				return err
			}
		}
	}
	for _, p := range keyring.Problems() {
		if _, err := fmt.Fprintf(d.out, "left out: %s: %s\n", plain.Line(p.Path), plain.Line(p.Reason)); err != nil {
			return err
		}
	}
	return nil
}

func keyColor(s trust.State) color {
	if s == trust.Untrusted {
		return red
	}
	return green
}

func newKeysShowCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [FINGERPRINT]",
		Short: "Show a public key, your own unless another is named",
		Long: `Show a public key with all there is to say about it, your own unless another is
named by its fingerprint or the beginning of it. The PEM text is what others need
to trust the key. With --json, there is one object for each document about it.`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.key,
		RunE: shows(func(_ *cobra.Command, args []string) error {
			keyring, err := openKeyring(sys, *opts)
			if err != nil {
				return err
			}
			entries, err := namedKey(keyring, args)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(sys.Stdout, keysOf(entries))
			}
			return writeKey(newDisplay(sys, *opts), entries)
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// namedKey finds the entries of the key that is named, or of the own one.
func namedKey(keyring *trust.Keyring, args []string) ([]trust.Entry, error) {
	if len(args) == 0 {
		own := slices.DeleteFunc(keyring.List(), func(e trust.Entry) bool { return e.State != trust.Own })
		if len(own) == 0 {
			return nil, tool.Faultf(tool.CodeNoKey, "you have no signing key").WithHint("rye-mcp keys generate")
		}
		return own[:1], nil
	}
	entries, err := keyring.Show(args[0])
	switch {
	case errors.Is(err, trust.ErrUnknownKey):
		return nil, tool.Faultf(tool.CodeNotFound, "%w", err).WithHint("rye-mcp keys list")
	case errors.Is(err, trust.ErrAmbiguousKey):
		return nil, tool.Faultf(tool.CodeAmbiguous, "%w", err).WithHint("give more digits")
	}
	return entries, err
}

func writeKey(d display, entries []trust.Entry) error {
	var t table
	row := func(name, value string) {
		if value != "" {
			t.add(cell{name, dim}, text(value))
		}
	}
	row("key", entries[0].Fingerprint)
	for _, e := range entries {
		row("owner", e.Owner)
		t.add(cell{"state", dim}, cell{string(e.State), keyColor(e.State)})
		row("reason", e.Reason)
		row("vouched by", e.By)
		row("version", e.Version)
		row("attestation", e.Attestation)
		row("document", e.Path)
		for _, note := range e.Notes {
			row("note", note)
		}
	}
	d.width = 0
	if err := t.write(d); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.out, "\n%s", entries[0].Key.PEM())
	return err
}

// tellEntry says what became of a key, or why it did not.
func tellEntry(sys System, opts options, fingerprint string, want trust.State, done string, asJSON bool) error {
	keyring, err := openKeyring(sys, opts)
	if err != nil {
		return err
	}
	entries, err := keyring.Show(fingerprint)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(entries, func(e trust.Entry) bool { return e.State == want })
	if at < 0 {
		return fmt.Errorf("key %s is not trusted yet: %s", fingerprint, entries[0].Reason)
	}
	e := entries[at]
	if asJSON {
		return writeJSON(sys.Stdout, keyOf(e))
	}
	_, err = fmt.Fprintf(sys.Stdout, "%s key %s of %s (%s)\n", done, e.Fingerprint, plain.Line(e.Owner), plain.Line(e.Path))
	return err
}

// key offers the fingerprints of all keys.
func (c completer) key(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	keyring, err := openKeyring(c.sys, *c.opts)
	if len(args) > 0 || err != nil {
		return nil, justThese
	}
	var offers []string
	offered := map[string]bool{} // several documents may be about one key
	for _, e := range keyring.List() {
		if strings.HasPrefix(e.Fingerprint, prefix) && !offered[e.Fingerprint] {
			offered[e.Fingerprint] = true
			offers = append(offers, cobra.CompletionWithDesc(e.Fingerprint, plain.Line(e.Owner+", "+string(e.State))))
		}
	}
	return offers, justThese
}
