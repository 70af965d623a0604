package memory_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/memory"
	entries "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

func TestFold(t *testing.T) {
	t.Parallel()
	const text = "The worker must call pg_notify after commit, because the webhooks of the hosted service drop events under load"
	for name, tt := range map[string]struct {
		kind        entries.Kind
		title, text string
		folds       bool
	}{
		"the same":             {entries.Workaround, "Notify by hand", text, true},
		"other case and marks": {entries.Workaround, "notify, by hand!", strings.ToUpper(text) + ".", true},
		"other spaces":         {entries.Workaround, " Notify  by hand", strings.ReplaceAll(text, " ", "\n "), true},
		"another kind":         {entries.Discovery, "Notify by hand", text, true},
		"slight words":         {entries.Workaround, "Notify by hand", "A worker must call pg_notify after the commit: webhooks of hosted service drop events under load", true},
		"another number":       {entries.Workaround, "Notify by hand", text + " of 100", false},
		"denied":               {entries.Workaround, "Notify by hand", strings.Replace(text, "must call", "must never call", 1), false},
		"another name":         {entries.Workaround, "Notify by hand", strings.Replace(text, "pg_notify", "pg_sleep", 1), false},
		"another fact":         {entries.Workaround, "Notify by hand", "Listeners reconnect within a second when the proxy restarts", false},
		"another title":        {entries.Workaround, "Notify by timer", text, false},
		"a title that says more": {
			entries.Workaround, "Notify by hand in staging", text, false,
		},
		"one word in a long text": {entries.Workaround, "Notify by hand", strings.Replace(text, "after", "before", 1), false},
		"one word more":           {entries.Workaround, "Notify by hand", strings.Replace(text, "drop events", "drop all events", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			first := s.write(threadWriter("one"), entries.Workaround, "Notify by hand", text)
			second := s.write(threadWriter("two"), tt.kind, tt.title, tt.text)
			if second.Folded != tt.folds || (second.Key == first.Key) != tt.folds {
				t.Errorf("%+v", second)
			}
			if tt.folds && (!strings.Contains(second.Existing, text) || !strings.Contains(second.Note, first.Key)) {
				t.Errorf("the writer is not told what stands: %+v", second)
			}
		})
	}
}

// apart are pairs of texts that say something else, however little differs.
var apart = map[string][2]string{
	"sign":              {"The server clock offset is -5 hours", "The server clock offset is 5 hours"},
	"operator":          {"a read takes < 5 ms", "a read takes > 5 ms"},
	"joined operator":   {"a read takes <5ms", "a read takes >5ms"},
	"comparison":        {"retry when status == 500", "retry when status != 500"},
	"percent":           {"the fee is 5%", "the fee is 5"},
	"currency":          {"the fee is €5", "the fee is $5"},
	"order":             {"billing starts before mail", "mail starts before billing"},
	"order of names":    {"We chose Postgres over MySQL for the ledger of the shop", "We chose MySQL over Postgres for the ledger of the shop"},
	"opposite":          {"Direct access of any worker to the production database of the shop is allowed during the nightly maintenance of the cluster", "Direct access of any worker to the production database of the shop is forbidden during the nightly maintenance of the cluster"},
	"choice":            {"Indent every source file of the service and of its generated clients with tabs before the formatter of the build runs", "Indent every source file of the service and of its generated clients with spaces before the formatter of the build runs"},
	"prefix":            {"The importer of the catalogue writes each changed article of the shop asynchronously to the index of the search service", "The importer of the catalogue writes each changed article of the shop synchronously to the index of the search service"},
	"direction":         {"the sync copies to staging", "the sync copies from staging"},
	"all or one":        {"the mail and the billing must be up", "the mail or the billing must be up"},
	"tense":             {"the proxy is needed", "the proxy was needed"},
	"question":          {"Is the cache shared?", "The cache is shared"},
	"no, or none":       {"No, retries are on", "No retries are on"},
	"where it ends":     {"Deploys fail. Always run migrations", "Deploys fail always. Run migrations"},
	"flag":              {"run the tool with -N", "run the tool with -n"},
	"unit":              {"the link has 100 MB a second", "the link has 100 Mb a second"},
	"camel case":        {"the field is userId", "the field is userid"},
	"letter as a name":  {"Plan A is chosen", "Plan is chosen"},
	"a letter alone":    {"R", "r"},
	"a flag alone":      {"-N", "-n"},
	"a unit alone":      {"MB", "Mb"},
	"articles alone":    {"A", "the"},
	"method":            {"call save! after the check", "call save after the check"},
	"everything below":  {"run go vet ./... in CI", "run go vet ./ in CI"},
	"a path's own dots": {"run it in ..", "run it in ."},
	"quotes":            {`the default is ""`, "the default is"},
	"absent":            {"the timeout is 30 s and no more", "the timeout is 30 s and more"},
}

// TestFoldLosesNoFact: whichever of two texts that differ in a fact comes first, both are kept, and
// the second writer is told of what is nearly the same.
func TestFoldLosesNoFact(t *testing.T) {
	t.Parallel()
	for name, pair := range apart {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][2]string{pair, {pair[1], pair[0]}} {
				s := newScene(t)
				first := s.write(client(), entries.Constraint, "Rule", order[0])
				second := s.write(client(), entries.Constraint, "Rule", order[1])
				if second.Folded || second.Key == first.Key {
					t.Fatalf("%q is lost: %+v", order[1], second)
				}
				for i, key := range []string{first.Key, second.Key} {
					if e, err := s.Get(t.Context(), key); err != nil || e.Text != order[i] {
						t.Errorf("%s is %q, %v, want %q", key, e.Text, err, order[i])
					}
				}
				for i, text := range order { // each is found again as what it is
					if w := s.write(threadWriter("one"), entries.Constraint, "Rule", text); !w.Folded || w.Key != []string{first.Key, second.Key}[i] {
						t.Errorf("%q again: %+v", text, w)
					}
				}
				if got := s.bring([]byte("## constraint: Rule\n\n" + order[0] + "\n\n## constraint: Rule\n\n" + order[1] + "\n")); got != (memory.Brought{Folded: 2}) {
					t.Errorf("imported: %+v", got)
				}
			}
		})
	}
}

// A title is a part of the fact: the same text under another one is another entry.
func TestTitleIsSubstance(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(client(), entries.Discovery, "Port of the API", "It is 8080.")
	if w := s.write(client(), entries.Discovery, "Port of the admin page", "It is 8080."); w.Folded {
		t.Errorf("%+v", w)
	}
}

// A writer of nearly the same as an entry is told the key of that, and can take its place.
func TestNearIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.write(client(), entries.Constraint, "Timezone", "The server clock offset is -5 hours")
	second := s.write(client(), entries.Constraint, "Timezone", "The server clock offset is 5 hours")
	if second.Near != first.Key {
		t.Errorf("%+v", second)
	}
	again := s.write(client(), entries.Constraint, "Timezone", "The server clock offset is 5 hours", first.Key)
	if !again.Folded || again.Key != second.Key || !slices.Equal(again.Superseded, []string{first.Key}) {
		t.Errorf("%+v", again)
	}
	if w := s.write(client(), entries.Constraint, "Release", "Releases are cut on mondays"); w.Near != "" {
		t.Errorf("%+v", w)
	}
}
