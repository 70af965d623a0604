package constant

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// unknown is the error of a name whose value is not known.
type unknown struct{ reason string }

func (e *unknown) Error() string { return e.reason }

func unknownf(format string, args ...any) error { return &unknown{fmt.Sprintf(format, args...)} }

// fact is what a file says about a name.
type fact struct {
	line     int
	from, to int      // its expression in the file; to is 0 where it has none
	touched  string   // why it has no value, however it is bound
	aliases  []string // names that are bound to something it is a part of
	followed bool     // the aliases have been looked at
}

// changesBehind matches what stands behind a name that a statement binds or
// changes: the rest of a target and what assigns to it, ++, or a method.
func changesBehind(comma string) *regexp.Regexp {
	return regexp.MustCompile(`^[\w\s.,*\[\]})"':?\x02` + comma + `]*?(?:[-+*/%@&|^:]|\*\*|//|<<|>>|&&|\|\||\?\?)?=(?:[^=>]|$)` +
		`|^\s*(?:\+\+|--)` +
		`|^[\w\s.\[\]"']*\.(?:append|extend|insert|remove|pop|popitem|clear|sort|reverse|update|setdefault|push|shift|unshift|splice|fill|copyWithin)\s*\(`)
}

// patterns tell what a place does to a name. They are compiled with the first file.
type patterns struct {
	isBound, assigns                 *regexp.Regexp // stand behind a name that is bound to a value
	changesBefore, chooses           *regexp.Regexp // stand before a name that a statement binds or changes, unless it chooses from it
	begins, goesOn                   *regexp.Regexp // stand around a name for whose sake there is a statement
	exports, exported                *regexp.Regexp // exports.NAME is a name of its own; within module.exports = {…} nothing is read
	imports, inCall, keywords, aName *regexp.Regexp
	tokens, types                    *regexp.Regexp // of the shape of an expression
	unfinished, counts, controls     *regexp.Regexp // ends of lines of JavaScript, and beginnings of its statements
}

var compiled = sync.OnceValue(func() *patterns {
	return &patterns{
		isBound: regexp.MustCompile(`^\s*(?::[^=]*(?:=>[^=]*)*)?=(?:\s*[A-Za-z_]\w*\s*=)*(?:[^=>]|$)`),
		assigns: regexp.MustCompile(`=(?:[^=>]|$)`),
		changesBefore: regexp.MustCompile(`(?:^|[^\w$.])(?:import|as|for|del|delete|global|def|case|let|const|var|function|class|enum|type|interface|namespace)` +
			`\s[\w\s.,()*{}\[\]$\x04]*$|(?:\+\+|--)\s*$`),
		chooses:    regexp.MustCompile(`\s(?:in|of)\s`),
		begins:     regexp.MustCompile(`(?:^|[;{})]|^\s*(?:if|elif|else|for|while|with|try|except|finally)\b.*:)\s*$`),
		goesOn:     regexp.MustCompile(`^\s*(?:\?\.|\.|\[)`),
		exports:    regexp.MustCompile(`(?:^|[\s;.])exports\.$`),
		exported:   regexp.MustCompile(`^\s*(?:module\.)?exports\s*=\s*\{(?:.*,)?\s*$`),
		imports:    regexp.MustCompile(`^\s*(?:from|import)\s`),
		inCall:     regexp.MustCompile(`[\w\])]\s*\([^()]*$`),
		keywords:   regexp.MustCompile(`^\s*(?:(?:export|declare|const|let|var)\s+|(?:module\.)?exports\b[\w.$]*)*`),
		aName:      regexp.MustCompile(`[\pL_$][\pL\d_$]*`),
		tokens:     regexp.MustCompile(`"'+|\x01+|\.?\d(?:[eE][-+]\d|[\w.])*|[\pL_$][\pL\d_$]*|\*\*|\.\.\.|=>|\S`),
		types:      regexp.MustCompile(`\b(?:as|satisfies)\s+` + oneType + `(?:\s*[|&]\s*` + oneType + `)*|<const>`),
		unfinished: regexp.MustCompile(`(?:[-=*/%&|<>,([{.?:!~^+]|\b(?:else|do|export|default|declare))$`),
		counts:     regexp.MustCompile(`(?:\+\+|--)$`),
		controls:   regexp.MustCompile(`^(?:if|for|while|with)\b`),
	}
})

// find looks a name up in the shape of the file.
func (o *outline) find(n string) *fact {
	f := o.facts[n]
	if f != nil {
		return f
	}
	f = &fact{}
	if o.facts[n] = f; len(o.facts) > o.most {
		f.touched = "depends on too many names"
		return f
	}
	line, uses := 0, 0
	for at := 0; ; {
		next := strings.Index(o.plain[at:], n)
		if next < 0 {
			return f
		}
		from, to := at+next, at+next+len(n)
		if end := strings.LastIndexByte(o.plain[at:from], '\n'); end >= 0 {
			line = at + end + 1
		}
		at = to
		if !o.isName(from, to) {
			continue
		}
		if uses++; uses > maxUses {
			f.touched = "is used too often to follow that"
			return f
		}
		o.note(f, from, to, line)
	}
}

// isName says whether a word stands there for itself: it is no part of another,
// nor of an object.
func (o *outline) isName(from, to int) bool {
	before := o.plain[max(0, from-window):from]
	if to < len(o.plain) && isWord(o.plain[to]) || before != "" && isWord(before[len(before)-1]) {
		return false
	}
	return !strings.HasSuffix(before, ".") || strings.HasSuffix(before, "...") || o.objects && o.exports.MatchString(before)
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// note adds to a fact what one place says, on a line that begins at line.
func (o *outline) note(f *fact, from, to, line int) {
	head := o.plain[line:min(from, line+window)]
	before, after := o.plain[max(line, from-window):from], o.plain[to:min(to+window, len(o.plain))]
	inBlock := o.blocks.MatchString(strings.TrimSpace(head)) || !o.objects && head != "" && head[0] <= ' '
	if end := strings.LastIndexAny(before, ";\x03"); end >= 0 {
		inBlock = inBlock || before[end] == innerEnd
		before = before[end+1:]
	}
	if end := strings.IndexAny(after, "\n;\x03"); end >= 0 {
		after = after[:end]
	}
	if f.line == 0 {
		f.line = o.lineOf(from)
	}
	changed := o.changesBefore.FindString(before)
	switch bound := o.isBound.FindString(after); {
	case bound != "" && !inBlock && o.binds.MatchString(before):
		if !o.objects && !strings.Contains(bound, ":") {
			f.aliases = append(f.aliases, o.aName.FindAllString(before+bound, -1)...)
		}
		o.bind(f, o.plain[from:to], to+strings.LastIndexByte(bound, '=')+1)
	case o.objects && o.exported.MatchString(before) && strings.HasPrefix(strings.TrimSpace(after), ":"):
		f.touch("has its value within module.exports; make it a constant")
	case o.imports.MatchString(head):
		f.touch(fmt.Sprintf("is imported on line %d", o.lineOf(from)))
	case o.changes.MatchString(after), changed != "" && !o.chooses.MatchString(changed), o.begins.MatchString(before) && o.goesOn.MatchString(after):
		f.touch(fmt.Sprintf("is bound or changed on line %d", o.lineOf(from)))
	case o.assigns.MatchString(head) && !o.inCall.MatchString(before):
		f.aliases = append(f.aliases, o.targets(head, before)...)
	}
}

// bind notes the expression that begins at a place.
func (o *outline) bind(f *fact, n string, from int) {
	to := len(o.plain)
	if end := strings.IndexAny(o.plain[from:], o.ends); end >= 0 {
		to = from + end
	}
	switch expression := strings.TrimSpace(o.plain[from:to]); {
	case expression == n, strings.HasSuffix(expression, "void 0"): // exports.A = A, and what compilers begin with
		return
	case f.to > 0:
		f.touch(fmt.Sprintf("is bound again on line %d", o.lineOf(from)))
	case expression == "":
		f.touch("is cut off")
	}
	f.line, f.from, f.to = o.lineOf(from), from, to
}

func (o *outline) lineOf(at int) int { return 1 + strings.Count(o.src[:at], "\n") }

// touch makes the value unknown; the first reason counts.
func (f *fact) touch(reason string) {
	if f.touched == "" {
		f.touched = reason
	}
}

// targets lists the names left of the first and of the last equals sign before a
// place.
func (o *outline) targets(head, before string) []string {
	first := o.keywords.ReplaceAllString(head[:o.assigns.FindStringIndex(head)[0]], "")
	last := before[:max(0, strings.LastIndexByte(before, '='))]
	if o.objects {
		last = last[strings.LastIndexByte(last, outerComma)+1:]
	}
	first, _, _ = strings.Cut(first, ":") // without its type
	last, _, _ = strings.Cut(o.keywords.ReplaceAllString(last, ""), ":")
	return append(o.aName.FindAllString(first, 10), o.aName.FindAllString(last, 10)...)
}

// follow touches a name whose list or mapping may be changed under another name.
func (o *outline) follow(f *fact) {
	if f.followed {
		return
	}
	f.followed = true
	for _, alias := range f.aliases {
		a := o.find(alias)
		if o.follow(a); a.touched != "" {
			f.touch(a.touched)
		}
	}
}

// constants tells what the names are bound to that the file says anything about.
func (o *outline) constants(names []string) map[string]Constant {
	o.most = len(names) + maxNames
	table := map[string]Constant{}
	for _, n := range names {
		f := o.find(n)
		if f.to == 0 && f.touched == "" {
			continue
		}
		c := Constant{Line: f.line, Reason: o.unread}
		if c.Reason == "" {
			v, err := o.value(f, 0)
			if c.Value = v; err != nil {
				c.Value, c.Reason = nil, err.Error()
			}
		}
		table[n] = c
	}
	return table
}

// value returns what a name is bound to.
func (o *outline) value(f *fact, deep int) (any, error) {
	if f.touched != "" {
		return nil, unknownf("%s", f.touched)
	}
	if star := strings.Index(o.plain[f.to:], "import *"); star >= 0 && !o.objects {
		return nil, unknownf("may be imported on line %d", o.lineOf(f.to+star))
	}
	if o.left -= f.to - f.from; o.left < 0 {
		return nil, unknownf("is too large, together with the constants before it")
	}
	v, err := o.fold(f, deep)
	switch v.(type) {
	case []any, map[string]any:
		if o.follow(f); f.touched != "" {
			return nil, unknownf("%s", f.touched)
		}
	}
	return v, err
}

// look returns the value of a name that an expression uses.
func (o *outline) look(n string, user *fact, deep int) (any, error) {
	f := o.find(n)
	if f.touched == "" && (f.to == 0 || f.to > user.from) {
		return nil, unknownf("uses %s, which no line before it binds", shorten(n))
	}
	v, err := o.value(f, deep+1)
	if err != nil && !errors.Is(err, errTooDeep) && len(err.Error()) < window/4 {
		err = unknownf("uses %s, which %s", shorten(n), err)
	}
	return v, err
}
