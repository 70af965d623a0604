package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

// completionTime is how long a person who pressed the tab key is kept waiting
// at most.
const completionTime = time.Second

// completer offers what an argument may be. It only looks: a source that it
// cannot read offers nothing, as a shell has no place for an error.
type completer struct {
	sys  System
	opts *options
}

const (
	justThese  = cobra.ShellCompDirectiveNoFileComp
	inOrder    = justThese | cobra.ShellCompDirectiveKeepOrder
	withoutGap = justThese | cobra.ShellCompDirectiveNoSpace
)

// completeWith sets how the value of a flag is completed.
func completeWith(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag is not defined: a mistake that every start would show
	}
}

// completeFlag offers fixed values for a flag.
func completeFlag(cmd *cobra.Command, flag string, values func() []string) {
	completeWith(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), justThese
	})
}

// spaces are the project and the roots that can be found out.
func (c completer) spaces() (string, resolve.Roots) {
	dir, err := projectDir(c.sys, *c.opts)
	if err == nil {
		dir, err = canonical(dir)
	}
	if err != nil {
		dir = ""
	}
	user, err := userSpace(c.sys)
	if err != nil {
		user = ""
	}
	return dir, resolve.Roots{Project: dir, User: user, System: system.FS()}
}

// anyThread offers the one thread of an argument.
func (c completer) anyThread(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, justThese
	}
	return c.ids(cmd.Context(), args, store.Filter{Text: prefix})
}

// threads offers one more thread.
func (c completer) threads(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.ids(cmd.Context(), args, store.Filter{Text: prefix})
}

// liveThreads offers one more thread of those that have not ended.
func (c completer) liveThreads(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.ids(cmd.Context(), args, store.Filter{
		Text: prefix, States: []thread.State{thread.Created, thread.Running},
	})
}

// endedThread offers the one thread of an argument, of those that have ended.
func (c completer) endedThread(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, justThese
	}
	return c.ids(cmd.Context(), args, store.Filter{Text: prefix, States: thread.EndStates()})
}

// ids lists threads whose id begins with the filter's text, newest first.
func (c completer) ids(ctx context.Context, given []string, f store.Filter) ([]string, cobra.ShellCompDirective) {
	f.Limit = store.MaxPage
	var ids []string
	for _, rec := range c.records(ctx, f) {
		id := string(rec.ThreadID)
		if strings.HasPrefix(id, f.Text) && !slices.Contains(given, id) {
			ids = append(ids, cobra.CompletionWithDesc(id, plain.Line(stateOf(rec.Status, rec.Queued(), false, rec.AwaitsRetry())+"  "+rec.Name)))
		}
	}
	return ids, inOrder
}

// records reads rows as they are stored: settling what has died is not for a tab
// key.
func (c completer) records(ctx context.Context, f store.Filter) []thread.Record {
	dir, roots := c.spaces()
	dir, err := canonical(dir) // of an empty name, the working directory
	if err != nil {
		return nil
	}
	found, err := newFinder(c.sys, roots.User).Find(dir)
	if err != nil || found.Seal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	st, err := sqlite.Open(ctx, found.Dir, sqlite.Options{Mark: found.Seal.Mark})
	if err != nil {
		return nil
	}
	defer func() { _ = st.Close() }() // only read
	rows, _, err := st.List(ctx, f)
	if err != nil {
		return nil
	}
	return rows
}

// help offers commands, the texts of the program, and other knowledge by its id.
func (c completer) help(cmd *cobra.Command, args []string, prefix string) (topics []string, _ cobra.ShellCompDirective) {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, justThese
	}
	for _, below := range about.Commands() {
		if below.IsAvailableCommand() && strings.HasPrefix(below.Name(), prefix) {
			topics = append(topics, cobra.CompletionWithDesc(below.Name(), below.Short))
		}
	}
	if len(args) > 0 {
		return topics, justThese
	}
	texts := ourTexts()
	for _, id := range texts.below(oursBelow) {
		if name := texts.topic(id, cmd.Root()); strings.HasPrefix(name, prefix) {
			topics = append(topics, cobra.CompletionWithDesc(name, texts[id].Description))
		}
	}
	others := c.itemIDs(prefix, []item.Kind{item.Knowledge}, item.Spaces())
	return append(topics, others...), justThese
}

// directive offers the directives of all spaces.
func (c completer) directive(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, justThese
	}
	return c.itemIDs(prefix, []item.Kind{item.Directive}, item.Spaces()), justThese
}

// items offers one more item that can be signed, or a file.
func (c completer) items(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	kinds := item.Kinds()
	if name, err := cmd.Flags().GetString("type"); err == nil && name != "" {
		kinds = []item.Kind{item.Kind(name)}
	}
	ids := c.itemIDs(prefix, kinds, []item.Space{item.Project, item.User})
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(args, id) }), cobra.ShellCompDirectiveDefault
}

// anyItem offers the one item of an argument, of all spaces.
func (c completer) anyItem(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, justThese
	}
	kinds := item.Kinds()
	if name, err := cmd.Flags().GetString("type"); err == nil && name != "" {
		kinds = []item.Kind{item.Kind(name)}
	}
	return c.itemIDs(prefix, kinds, item.Spaces()), justThese
}

func (c completer) itemIDs(prefix string, kinds []item.Kind, spaces []item.Space) []string {
	_, roots := c.spaces()
	var ids []string
	for _, kind := range kinds {
		resolver := resolve.New(roots)
		list := resolver.Items
		if strings.HasPrefix(prefix, item.ThreadRecords) { // of which there may be very many
			list = resolver.All
		}
		entries, err := list(kind)
		if err != nil {
			continue
		}
		for _, e := range entries { // the same id again is one that is shadowed
			if strings.HasPrefix(e.ID, prefix) && slices.Contains(spaces, e.Space) {
				ids = append(ids, e.ID)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// inputs offers the inputs that the directive declares and that have not been
// given, but for secret ones.
func (c completer) inputs(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return c.declared(cmd, "input", args, prefix, func(in item.Input) bool { return !in.Secret })
}

// inputVariables offers all inputs that have not been given, and then the names
// of variables.
func (c completer) inputVariables(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	input, variable, named := strings.Cut(prefix, "=")
	if !named {
		return c.declared(cmd, inputEnvFlag, args, prefix, func(item.Input) bool { return true })
	}
	var names []string
	for _, entry := range c.sys.Environ {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, variable) {
			names = append(names, input+"="+name)
		}
	}
	slices.Sort(names)
	return names, justThese
}

// declared offers those inputs of the directive in args that a flag may give and
// has not given.
func (c completer) declared(
	cmd *cobra.Command, flag string, args []string, prefix string, may func(item.Input) bool,
) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 || strings.Contains(prefix, "=") {
		return nil, justThese
	}
	_, roots := c.spaces()
	found, err := resolve.New(roots).Find(item.Directive, args[0])
	if err != nil {
		return nil, justThese
	}
	doc, err := found.Directive()
	if err != nil {
		return nil, justThese
	}
	var names []string
	for _, in := range doc.Inputs {
		if may(in) {
			names = append(names, cobra.CompletionWithDesc(in.Name+"=", plain.Line(in.Description)))
		}
	}
	return notGiven(cmd, flag, names), withoutGap
}

func (c completer) limits(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range item.LimitNames() {
		names = append(names, name+"=")
	}
	return notGiven(cmd, "limit", names), withoutGap
}

// notGiven leaves out the names= that a flag has been given already.
func notGiven(cmd *cobra.Command, flag string, names []string) []string {
	given, err := cmd.Flags().GetStringArray(flag)
	if err != nil {
		return names
	}
	return slices.DeleteFunc(names, func(offer string) bool {
		name, _, _ := strings.Cut(offer, "=")
		return slices.ContainsFunc(given, func(g string) bool { return strings.HasPrefix(g, name+"=") })
	})
}

// models offers tiers, and the models that providers name.
func (c completer) models(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	_, roots := c.spaces()
	settings := config.New(roots).Read()
	names, err := settings.ProviderNames()
	if err != nil {
		return nil, justThese
	}
	var tiers, models []string
	for _, name := range names {
		p, _, err := settings.Provider(name)
		if err != nil {
			continue
		}
		for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
			tiers = append(tiers, tier)
			models = append(models, name+"/"+p.Tiers[tier])
		}
	}
	slices.Sort(tiers)
	slices.Sort(models)
	return slices.Concat(slices.Compact(tiers), slices.Compact(models)), justThese
}

// settings offers the names of settings that config show knows.
func (c completer) settings(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	_, roots := c.spaces()
	names, err := config.New(roots).Read().SettingsNames()
	if len(args) > 0 || err != nil {
		return nil, justThese
	}
	return names, justThese
}
