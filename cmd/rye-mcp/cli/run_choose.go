package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
)

// offeredJSON is what run writes with --json when it is given no directive.
type offeredJSON struct {
	Success    bool        `json:"success"`
	Directives []offerJSON `json:"directives"`
}

type offerJSON struct {
	ID          string           `json:"item_id"`
	Description string           `json:"description"`
	Inputs      []offerInputJSON `json:"inputs"`
}

type offerInputJSON struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// offerDirectives shows the directives that a client would offer as prompts. On a
// terminal the person chooses one and is asked for the inputs that it must have;
// then it runs.
func offerDirectives(ctx context.Context, sys System, opts options, flags runFlags) error {
	offered, err := offeredDirectives(ctx, sys, opts)
	if err != nil {
		return err
	}
	if flags.json {
		return writeJSON(sys.Stdout, offersJSON(offered))
	}
	if err := showOffers(sys, opts, offered); err != nil || !onTerminal(sys.Stdin) || !onTerminal(sys.Stdout) {
		return err
	}
	q := newQuestions(sys, sys.Stdout)
	chosen, err := q.choose(offered)
	if err != nil || chosen == nil {
		return err
	}
	given, err := q.inputs(chosen, flags)
	if err != nil {
		return err
	}
	flags.inputs = append(flags.inputs, given...)
	return runDirective(ctx, sys, opts, chosen.ID, flags)
}

func offeredDirectives(ctx context.Context, sys System, opts options) ([]prompt.Prompt, error) {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return nil, err
	}
	p, err := openProject(ctx, sys, dir, newLog(sys, io.Discard))
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	return newPrompts(p).List(ctx)
}

func offersJSON(offered []prompt.Prompt) offeredJSON {
	list := offeredJSON{Success: true, Directives: []offerJSON{}}
	for _, o := range offered {
		one := offerJSON{o.ID, o.Description, []offerInputJSON{}}
		for _, a := range o.Arguments {
			one.Inputs = append(one.Inputs, offerInputJSON(a))
		}
		list.Directives = append(list.Directives, one)
	}
	return list
}

// showOffers writes a directive a line, with the inputs that it must have.
func showOffers(sys System, opts options, offered []prompt.Prompt) error {
	d := newDisplay(sys, opts)
	t := table{header: []string{"", "DIRECTIVE", "NEEDS", "WHAT IT DOES"}}
	for i, o := range offered {
		var needs []string
		for _, a := range o.Arguments {
			if a.Required {
				needs = append(needs, a.Name)
			}
		}
		t.add(text(strconv.Itoa(i+1)), text(o.ID), text(strings.Join(needs, ", ")), text(o.Description))
	}
	t.shortenTo("WHAT IT DOES", d.width)
	if err := t.write(d); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.out, "\nRun one:  rye-mcp run rye/explain --input path=src\nLook:     rye-mcp items show rye/explain\n")
	return err
}

// questions are asked of a person at a terminal.
type questions struct {
	lines *bufio.Scanner
	out   io.Writer
}

func newQuestions(sys System, out io.Writer) questions {
	return questions{lines: bufio.NewScanner(sys.Stdin), out: out}
}

func (q questions) ask(question string) (string, error) {
	if _, err := fmt.Fprint(q.out, question+" "); err != nil {
		return "", err
	}
	if !q.lines.Scan() {
		return "", q.lines.Err()
	}
	return strings.TrimSpace(q.lines.Text()), nil
}

// choose reads a number or an id; nil when the person wants none.
func (q questions) choose(offered []prompt.Prompt) (*prompt.Prompt, error) {
	answer, err := q.ask("\nWhich one (a number or an id; nothing leaves)?")
	if err != nil || answer == "" {
		return nil, err
	}
	for i := range offered {
		if answer == strconv.Itoa(i+1) || answer == offered[i].ID {
			return &offered[i], nil
		}
	}
	return nil, &usageError{message: fmt.Sprintf("%q is none of them", answer), try: "rye-mcp run"}
}

// inputs asks for those that the directive must have and that no flag has given.
func (q questions) inputs(chosen *prompt.Prompt, flags runFlags) ([]string, error) {
	named := func(list []string, name string) bool {
		for _, pair := range list {
			if strings.HasPrefix(pair, name+"=") {
				return true
			}
		}
		return false
	}
	var given []string
	for _, a := range chosen.Arguments {
		if !a.Required || named(flags.inputs, a.Name) || named(flags.env, a.Name) {
			continue
		}
		answer, err := q.ask(fmt.Sprintf("%s: %s\n>", a.Name, a.Description))
		if err != nil {
			return nil, err
		}
		given = append(given, a.Name+"="+answer)
	}
	return given, nil
}
