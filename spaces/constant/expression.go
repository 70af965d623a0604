package constant

import "strings"

var errTooDeep = unknownf("is nested more than %d deep", maxDepth)

// A spread value has a mark before it: [*A] becomes [b"*"|A], and {**A} becomes
// {b"*":A}. Bytes are nothing else, as they are refused.
const (
	listSpread = `b"*"|`
	mapSpread  = `b"*":`
)

// oneType is a type of TypeScript, with arguments two deep.
const oneType = `(?:(?:readonly|typeof|keyof)\s+)*[\w.$]+(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?(?:\[\])*`

// write writes the expression of a name as one of Starlark.
func (o *outline) write(f *fact) (string, error) {
	shape := o.plain[f.from:f.to]
	if o.objects {
		shape = o.types.ReplaceAllStringFunc(shape, func(t string) string { return strings.Repeat(" ", len(t)) })
	}
	var b strings.Builder
	open, last := "", "" // brackets around; that of a computed key is ":"
	list := o.tokens.FindAllStringIndex(shape, maxTokens)
	if len(list) == maxTokens {
		return "", unknownf("is too long")
	}
	for i, at := range list {
		token, next := shape[at[0]:at[1]], ""
		if i+1 < len(list) {
			next = shape[list[i+1][0]:list[i+1][1]]
		}
		written, err := o.token(token, o.src[f.from+at[0]:f.from+at[1]], last, next, open)
		switch {
		case err != nil:
			return "", err
		case strings.ContainsAny(token, "([{"):
			if len(open) == maxDepth {
				return "", errTooDeep
			}
			open += token
			if token == "[" && written == "(" {
				open = open[:len(open)-1] + ":"
			}
		case strings.ContainsAny(token, ")]}"):
			if open == "" {
				return "", unknownf("is not written as a constant: it closes what it does not open")
			}
			open = open[:len(open)-1]
		}
		b.WriteString(written + " ")
		last = token
	}
	return b.String(), nil
}

// token writes one token: as it is in the source, unless Starlark has another
// form for it.
func (o *outline) token(token, written, last, next, open string) (string, error) {
	inList := last == "[" || last == "(" || last == string(rune(outerComma)) || last == "," || last == ""
	switch {
	case token == "=>":
		return "", unknownf("is a function")
	case token == "?":
		return "", unknownf("depends on a condition")
	case token[0] == noValue:
		return "", unknownf("cannot be read at %s", shorten(written))
	case o.objects && strings.HasSuffix(open, "{") && (last == "{" || last == ","):
		return o.key(token, written, next)
	case token[0] == textBegin && last != "" && last[0] == textBegin:
		written, err := o.text(written)
		return "+" + written, err
	case token[0] == textBegin:
		return o.text(written)
	case strings.ContainsAny(token[:1], ".0123456789") && len(token) > 1 && token != "...":
		return strings.ReplaceAll(written, "_", ""), nil
	case token == "*" && !o.objects && inList, token == "..." && o.objects && inList:
		return listSpread, nil
	case token == "**" && !o.objects && (last == "{" || last == ","):
		return mapSpread, nil
	case token == "]" && strings.HasSuffix(open, ":"):
		return ")", nil
	}
	return written, nil
}

// key writes what a key of an object begins with: {a, [b]: 1, ...c} becomes
// {"a": a, (b): 1, b"*": c}.
func (o *outline) key(token, written, next string) (string, error) {
	switch isName := isWord(token[0]); {
	case strings.Trim(written, `'"`) == "__proto__":
		return "", unknownf("sets a prototype")
	case token[0] == textBegin:
		return o.text(written)
	case token == "...":
		return mapSpread, nil
	case token == "[":
		return "(", nil
	case token == "}", token[0] >= '0' && token[0] <= '9':
		return written, nil
	case isName && next == ":":
		return `"` + written + `"`, nil
	case isName && (next == "," || next == "}"):
		return `"` + written + `":` + written, nil
	case isName:
		return "", unknownf("has a method")
	}
	return written, nil
}

func shorten(s string) string {
	const most = 40
	for i, r := range s {
		if i > most || r == '\n' {
			return s[:i] + "…"
		}
	}
	return s
}
