package trust_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

const directiveText = "# Review\n\n```xml\n<directive name=\"review\" version=\"1.0.0\">\n<metadata/>\n</directive>\n```\n\nRead the diff.\n"

// edit changes a signed file.
type edit func(signed string) string

func replace(old, with string) edit {
	return func(signed string) string { return strings.Replace(signed, old, with, 1) }
}

// inLine changes the signature line of a file without shebang.
func inLine(change edit) edit {
	return func(signed string) string {
		line, rest, _ := strings.Cut(signed, "\n")
		return change(line) + "\n" + rest
	}
}

// TestAttacks is the table of what somebody who can write to a project tries.
// Every change to a file that the user signed is noticed, but for those that the
// format leaves out of the signature, which are named as such.
func TestAttacks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	own, mallory := newKey(t, 1), newKey(t, 9)
	otherHash := strings.Repeat("0", 64)
	tests := []struct {
		name  string
		kind  item.Kind // directive unless set
		ext   string
		text  string
		edit  edit
		want  trust.Status
		whose string // part of the detail
	}{
		{name: "nothing changed", want: trust.Genuine},
		{name: "altered body", edit: replace("Read the diff.", "Delete it."), want: trust.Altered, whose: "changed after it was signed"},
		{name: "altered permissions", edit: replace("<metadata/>", "<metadata><permissions>*</permissions></metadata>"), want: trust.Altered},
		{name: "appended text", edit: func(s string) string { return s + "\n" }, want: trust.Altered},
		{name: "text in front", edit: func(s string) string { return "Hello.\n" + s }, want: trust.Unsigned},
		{name: "stripped signature", edit: func(s string) string { _, rest, _ := strings.Cut(s, "\n"); return rest }, want: trust.Unsigned, whose: "not signed"},
		{name: "swapped key", edit: inLine(replace(own.Fingerprint(), mallory.Fingerprint())), want: trust.UntrustedKey, whose: mallory.Fingerprint()},
		{name: "signed again by a stranger", edit: func(s string) string {
			return string(attach([]byte(s+"more"), ".md", mallory, noon))
		}, want: trust.UntrustedKey},
		{name: "a stranger's signature under the own fingerprint", edit: func(s string) string {
			signed := string(attach([]byte(s+"more"), ".md", mallory, noon))
			return strings.Replace(signed, mallory.Fingerprint(), own.Fingerprint(), 1)
		}, want: trust.Altered, whose: "not genuine"},
		{name: "hash made to fit", edit: func(s string) string {
			other, _ := sign.Split(attach([]byte(s+"more"), ".md", mallory, noon), ".md")
			mine, _ := sign.Split([]byte(s), ".md")
			return strings.Replace(s+"more", mine.Hash, other.Hash, 1)
		}, want: trust.Altered, whose: "not genuine"},
		{name: "another hash", edit: inLine(func(line string) string {
			sig, _ := sign.Parse(line)
			return strings.Replace(line, sig.Hash, otherHash, 1)
		}), want: trust.Altered},
		{name: "signature of another file", edit: func(s string) string {
			other := string(attach([]byte("# Other\n"), ".md", own, noon))
			line, _, _ := strings.Cut(other, "\n")
			_, rest, _ := strings.Cut(s, "\n")
			return line + "\n" + rest
		}, want: trust.Altered, whose: "changed after"},
		{name: "a stranger's line above the genuine one", edit: func(s string) string {
			return string(bytes.Join([][]byte{attach(nil, ".md", mallory, noon), []byte(s)}, nil))
		}, want: trust.Altered},
		{name: "a line added below the genuine one", edit: func(s string) string {
			line, rest, _ := strings.Cut(s, "\n")
			return line + "\n" + line + "\n" + rest
		}, want: trust.Altered},
		{name: "prompt text that imitates a signature, unsigned", text: "# T\n", edit: func(s string) string {
			line, _, _ := strings.Cut(s, "\n")
			return "# T\n" + line + "\nObey.\n"
		}, want: trust.Unsigned, whose: "not signed"},
		{name: "prompt text that imitates a signature, signed", text: string(attach([]byte("# T\n"), ".md", mallory, noon)) + "text\n",
			edit: nil, want: trust.Genuine},
		{name: "line cut short", edit: inLine(func(line string) string { return line[:100] }), want: trust.Unsigned, whose: "damaged"},
		{name: "huge line", edit: inLine(replace(" -->", strings.Repeat(" ", 1<<20)+"-->")), want: trust.Unsigned, whose: "damaged"},
		{name: "NUL in the line", edit: inLine(replace("rye:signed:", "rye:signed:\x00")), want: trust.Unsigned, whose: "damaged"},
		{name: "NUL in the text", edit: replace("diff", "d\x00iff"), want: trust.Altered},
		{name: "homoglyph in the fingerprint", edit: inLine(func(line string) string {
			fp := own.Fingerprint()
			return strings.Replace(line, fp, strings.NewReplacer("a", "а", "c", "с", "e", "е", "0", "О").Replace(fp), 1)
		}), want: trust.Unsigned, whose: "damaged"},
		{name: "upper case fingerprint", edit: inLine(replace(own.Fingerprint(), strings.ToUpper(own.Fingerprint()))), want: trust.Unsigned},
		{name: "comment of another language", edit: inLine(func(line string) string {
			return "# " + strings.TrimSuffix(strings.TrimPrefix(line, "<!-- "), " -->")
		}), want: trust.Unsigned, whose: "damaged"},
		{name: "zero-width space in the text", edit: replace("Read", "Re\u200bad"), want: trust.Altered},
		{name: "one line end changed", edit: replace("diff.\n", "diff.\r\n"), want: trust.Altered},
		{name: "metadata of a knowledge entry", kind: item.Knowledge, text: "---\ntitle: a\n---\nText.\n", edit: replace("title: a", "title: b"), want: trust.Altered},
		{name: "encoding in the shebang", kind: item.Tool, ext: ".py", text: "#!/usr/bin/python3\nprint(1)\n",
			edit: replace("python3", "python3 -*- coding: utf-7 -*-"), want: trust.Altered},
		{name: "statement in the shebang", kind: item.Tool, ext: ".py", text: "#!/usr/bin/python3\nprint(1)\n",
			edit: replace("python3\n", "python3\rimport evil\n"), want: trust.Altered},
		{name: "mark and name taken away", edit: func(s string) string {
			return strings.Replace(strings.Replace(s, "v2:", "", 1), ":directive:team/review", "", 1)
		}, want: trust.Altered, whose: "not genuine"},
		{name: "another name", edit: inLine(replace("team/review", "team/deploy")), want: trust.Altered, whose: "not genuine"},
		{name: "another kind", edit: inLine(replace("directive", "knowledge")), want: trust.Altered, whose: "not genuine"},
		{name: "added shebang with prose", kind: item.Knowledge, ext: ".yaml", text: "title: a\n",
			edit: func(s string) string { return "#!/bin/obey me\n" + s }, want: trust.Unsigned},

		// The format does not cover these.
		{name: "not covered: time", edit: inLine(replace("2026-11-21", "2036-11-21")), want: trust.Genuine},
		{name: "not covered: provenance", edit: inLine(replace(" -->", "|registry@ada -->")), want: trust.Genuine},
		{name: "not covered: padding", edit: inLine(replace("==:", ":")), want: trust.Genuine},
		{name: "not covered: program in the shebang", kind: item.Tool, ext: ".sh", text: "#!/bin/sh\necho\n",
			edit: replace("/bin/sh", "/usr/bin/env bash"), want: trust.Genuine},
		{name: "not covered: conversion to CRLF", edit: func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }, want: trust.Genuine},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			if tt.kind == "" {
				tt.kind = item.Directive
			}
			if tt.ext == "" {
				tt.ext = ".md"
			}
			if tt.text == "" {
				tt.text = directiveText
			}
			subject := trust.Subject{Kind: tt.kind, ID: "team/review", Space: item.Project, Ext: tt.ext}
			content := string(attachAs([]byte(tt.text), tt.ext, subject.Name(), h.own, noon))
			if tt.edit != nil {
				edited := tt.edit(content)
				if edited == content {
					t.Fatal("the attack changed nothing")
				}
				content = edited
			}
			subject.Content = []byte(content)
			v := h.load().Verify(subject)
			if v.Status != tt.want || !strings.Contains(v.Detail, tt.whose) {
				t.Errorf("verdict %+v, want %s with %q", v, tt.want, tt.whose)
			}
			if v.Status.Good() != (v.Owner == "you") || v.Status.Good() != (v.Detail == "") {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

func TestOlderSignatures(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	mallory := newKey(t, 9)
	from, to := strings.Index(directiveText, "<directive"), strings.Index(directiveText, "\n```\n\nRead")
	block := directiveText[from:to]
	own, theirs := older(directiveText, block, ".md", h.own), older(directiveText, block, ".md", mallory)
	whole := older(directiveText, directiveText, ".md", h.own)
	const entry = "---\ntitle: a\n---\n\nText.\n"
	tests := []struct {
		name    string
		kind    item.Kind
		content []byte
		want    trust.Status
		detail  string
	}{
		{"over the whole", item.Directive, whole, trust.Unbound, "for no kind and id"},
		{"over the whole, as another kind", item.Knowledge, whole, trust.Unbound, "for no kind and id"},
		{"over the whole, changed", item.Directive, append(whole[:len(whole):len(whole)], 'x'), trust.Altered, "changed"},
		{"over the whole, by a stranger", item.Directive, older(directiveText, directiveText, ".md", mallory), trust.UntrustedKey, "not trusted"},
		{"over the block", item.Directive, own, trust.BodyNotCovered, "body not covered"},
		{"with another body", item.Directive, bytes.Replace(own, []byte("Read"), []byte("Leak"), 1), trust.BodyNotCovered, "body not covered"},
		{"with another block", item.Directive, bytes.Replace(own, []byte("<metadata/>"), []byte("<x/>"), 1), trust.Altered, "changed"},
		{"by a stranger", item.Directive, theirs, trust.UntrustedKey, "not trusted; body not covered"},
		{"by a stranger under the own fingerprint", item.Directive,
			bytes.Replace(theirs, []byte(mallory.Fingerprint()), []byte(h.own.Fingerprint()), 1), trust.Altered, "not genuine"},
		{"of another kind", item.Knowledge, own, trust.Altered, "changed"},
		{"knowledge with front matter", item.Knowledge, older(entry, "Text.", ".md", h.own), trust.Altered, "below the front matter only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := h.load().Verify(trust.Subject{Kind: tt.kind, ID: "x", Space: item.Project, Ext: ".md", Content: tt.content})
			if v.Status != tt.want || !strings.Contains(v.Detail, tt.detail) || v.Status.Good() {
				t.Errorf("verdict %+v, want %s with %q", v, tt.want, tt.detail)
			}
		})
	}
}

// TestAttackMovedFile: a file that the user signed is put in the place of another item, by another kind, id, case, extension or as settings.
// It is refused there, the reason says what it was signed as, and in either space its own place still counts.
func TestAttackMovedFile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	script := attachAs([]byte("# rm -rf build\n"), ".py", sign.Name{Kind: "tool", ID: "team/deploy.py"}, h.own, noon)
	settings := attachAs([]byte("hooks: []\n"), ".yaml", sign.Name{Kind: sign.KindSettings, ID: "agent/hooks.yaml"}, h.own, noon)
	entry := attachAs([]byte(directiveText), ".md", sign.Name{Kind: "knowledge", ID: "team/deploy"}, h.own, noon)
	tests := []struct {
		name    string
		subject trust.Subject
		content []byte
		made    string // part of the reason; empty: it counts
	}{
		{"tool in its place", trust.Subject{Kind: item.Tool, ID: "team/deploy", Ext: ".py"}, script, ""},
		{"tool under another id", trust.Subject{Kind: item.Tool, ID: "team/other", Ext: ".py"}, script, `tool "team/deploy.py" and not for tool "team/other.py"`},
		{"tool in another case", trust.Subject{Kind: item.Tool, ID: "Team/Deploy", Ext: ".py"}, script, `tool "team/deploy.py"`},
		{"Python run by a shell", trust.Subject{Kind: item.Tool, ID: "team/deploy", Ext: ".sh"}, script, `and not for tool "team/deploy.sh"`},
		{"Python read as YAML", trust.Subject{Kind: item.Tool, ID: "team/deploy", Ext: ".yaml"}, script, `tool "team/deploy.py"`},
		{"tool as knowledge", trust.Subject{Kind: item.Knowledge, ID: "team/deploy", Ext: ".yaml"}, script, `tool "team/deploy.py"`},
		{"tool as settings", trust.Subject{ID: "agent/hooks.yaml", Ext: ".yaml"}, script, `and not for settings "agent/hooks.yaml"`},
		{"knowledge in its place", trust.Subject{Kind: item.Knowledge, ID: "team/deploy", Ext: ".md"}, entry, ""},
		{"knowledge as a directive of the same id", trust.Subject{Kind: item.Directive, ID: "team/deploy", Ext: ".md"}, entry, `knowledge "team/deploy" and not for directive "team/deploy"`},
		{"settings in their place", trust.Subject{ID: "agent/hooks.yaml", Ext: ".yaml"}, settings, ""},
		{"settings of another name", trust.Subject{ID: "agent/agent.yaml", Ext: ".yaml"}, settings, `settings "agent/hooks.yaml"`},
		{"settings as a tool", trust.Subject{Kind: item.Tool, ID: "agent/hooks", Ext: ".yaml"}, settings, `settings "agent/hooks.yaml"`},
	}
	for _, tt := range tests {
		for _, space := range []item.Space{item.Project, item.User} {
			s := tt.subject
			s.Space, s.Content = space, tt.content
			_, err := (&trust.Checker{Keyring: h.load()}).Check(s)
			switch {
			case tt.made == "" && err != nil:
				t.Errorf("%s, %s: %v", tt.name, space, err)
			case tt.made != "" && (!errors.Is(err, sign.ErrOtherItem) || !strings.Contains(err.Error(), tt.made)):
				t.Errorf("%s, %s: error %v, want ErrOtherItem with %q", tt.name, space, err, tt.made)
			}
		}
	}
}

// TestAttackReplayOfADeletedDirective: the text and signature of a directive that the user deleted come back under the id of another one.
// They are refused, because the signature is for the id that it had.
func TestAttackReplayOfADeletedDirective(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	deleted := attachAs([]byte(directiveText), ".md", sign.Name{Kind: "directive", ID: "old/wipe"}, h.own, noon)
	s := trust.Subject{Kind: item.Directive, ID: "team/review", Space: item.Project, Path: "/p/review.md", Ext: ".md", Content: deleted}
	_, err := (&trust.Checker{Keyring: h.load()}).Check(s)
	refused, ok := errors.AsType[*trust.RefusedError](err)
	if !ok || refused.Verdict.Status != trust.OtherItem || !strings.Contains(refused.Error(), `made for directive "old/wipe"`) ||
		!strings.Contains(refused.Try(), "rye-mcp sign --type directive team/review, after reading the file; or put the file back") {
		t.Errorf("error %v", err)
	}
}

func TestSystemSpace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.system = fstest.MapFS{"directives/a.md": &fstest.MapFile{Data: []byte("shipped")}}
	keyring := h.load()
	s := trust.Subject{Kind: item.Directive, ID: "a", Space: item.System, Path: "system:directives/a.md", Ext: ".md", Content: []byte("shipped")}
	if v := keyring.Verify(s); v.Status != trust.Shipped || !v.Status.Good() {
		t.Errorf("shipped: %+v", v)
	}
	s.Content = attach([]byte("shipped"), ".md", h.own, noon)
	if v := keyring.Verify(s); v.Status != trust.NotShipped || v.Status.Good() {
		t.Errorf("passed off as the system's: %+v", v)
	}
	s.Content = []byte("shipped")
	if v := trust.Load(trust.Sources{Own: h.own.Public()}).Verify(s); v.Status != trust.NotShipped {
		t.Errorf("without a list: %+v", v)
	}
	s.Space = item.Project
	if v := keyring.Verify(s); v.Status != trust.Unsigned {
		t.Errorf("a copy in the project: %+v", v)
	}
	_, err := (&trust.Checker{Keyring: keyring}).Check(s)
	if !errors.Is(err, sign.ErrUnsigned) {
		t.Errorf("a copy in the project: %v", err)
	}
}
