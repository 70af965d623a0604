package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Planting is what a generated set is like.
type Planting struct {
	Seed uint64
	// Facts is how many texts are asked about, each by one question, and Distractors how
	// many are not: all are about the same things, and every fourth shares two of its
	// three with a fact.
	Facts, Distractors int
	// Unanswerable is how many questions have no answer. Every second one shares a word
	// with texts.
	Unanswerable int
	// Paraphrased is the share of the words of a question that are not those of its fact.
	Paraphrased float64
}

// Standard is the set of the benchmark.
func Standard() Planting {
	return Planting{Seed: 16, Facts: 100, Distractors: 900, Unanswerable: 50, Paraphrased: 0.6}
}

// synonyms are words of which each of a line can stand for the others.
var synonyms = [...][]string{
	{"database", "store"}, {"login", "signin"}, {"cache", "memoization"}, {"retry", "reattempt"}, {"timeout", "deadline"},
	{"queue", "backlog"}, {"invoice", "bill"}, {"customer", "buyer"}, {"deletion", "removal"}, {"encryption", "cipher"},
	{"deployment", "rollout"}, {"schedule", "timetable"}, {"upload", "transfer"}, {"picture", "photo"}, {"mail", "message"},
	{"report", "summary"}, {"user", "member"}, {"payment", "charge"}, {"search", "lookup"}, {"index", "catalogue"},
	{"test", "check"}, {"build", "compilation"}, {"settings", "configuration"}, {"network", "connection"}, {"failure", "fault"},
	{"log", "journal"}, {"backup", "snapshot"}, {"worker", "thread"}, {"price", "cost"}, {"limit", "ceiling"},
	{"token", "credential"}, {"page", "screen"}, {"currency", "money"}, {"country", "region"}, {"holiday", "vacation"},
	{"address", "location"}, {"discount", "rebate"}, {"order", "purchase"}, {"parcel", "shipment"}, {"signature", "seal"},
}

// foreign are words that no text has.
var foreign = [...]string{
	"telescope", "orchard", "glacier", "violin", "harbour", "meadow", "lantern", "compass", "saddle", "pottery", "falcon", "quarry",
}

// shapes are the sentences of facts, with three things, a value and a reason.
var shapes = [...]string{
	"We decided that the %s of the %s takes its %s from %s, because the %s demands it.",
	"The %s for each %s must respect the %s of %s; otherwise the %s breaks.",
	"It turned out that %s and %s share one %s, which is %s, on account of the %s.",
	"Until the %s of the %s is mended, its %s is set to %s by hand, and the %s is ignored.",
}

// questions ask for the three things of a fact.
var questions = [...]string{
	"What did we say about %s, %s and %s?",
	"Write the part where %s meets %s, and mind the %s.",
	"Change how the %s handles %s with regard to the %s.",
}

// Planted generates a set: facts as threads note them, among others that share words with
// them, and questions in other words. The same planting is always the same set.
func Planted(p Planting) Set {
	g := generator{Planting: p, rand: rand.New(rand.NewPCG(p.Seed, 1)), taken: map[[3]int]bool{}} //nolint:gosec // a generator of test data
	var set Set
	for i := range p.Facts {
		fact := g.things()
		id := fmt.Sprintf("fact-%d", i)
		set.Documents = append(set.Documents, Document{ID: id, Text: g.text(fact)})
		set.Questions = append(set.Questions, Question{Text: g.question(fact), Evidence: []string{id}})
		for d := range p.Distractors*(i+1)/p.Facts - p.Distractors*i/p.Facts {
			set.Documents = append(set.Documents, Document{ID: fmt.Sprintf("other-%d-%d", i, d), Text: g.text(g.near(fact, d))})
		}
	}
	for i := range p.Unanswerable {
		of := g.rand.Perm(len(foreign))
		words := []any{foreign[of[0]], foreign[of[1]], foreign[of[2]]}
		if i%2 == 1 {
			words[1] = g.word(g.rand.IntN(len(synonyms)), 0)
		}
		text := fmt.Sprintf(questions[g.rand.IntN(len(questions))], words...)
		set.Questions = append(set.Questions, Question{Text: text, Evidence: []string{}})
	}
	g.rand.Shuffle(len(set.Documents), func(i, j int) {
		set.Documents[i], set.Documents[j] = set.Documents[j], set.Documents[i]
	})
	return set
}

type generator struct {
	Planting
	rand  *rand.Rand
	taken map[[3]int]bool
}

// things are three that no text has together yet.
func (g *generator) things() [3]int {
	for {
		var t [3]int
		copy(t[:], g.rand.Perm(len(synonyms)))
		if g.take(t) {
			return t
		}
	}
}

func (g *generator) take(t [3]int) bool {
	slices.Sort(t[:])
	if g.taken[t] {
		return false
	}
	g.taken[t] = true
	return true
}

// near are the things of a text that is not the fact: every fourth shares two with it.
func (g *generator) near(fact [3]int, n int) [3]int {
	if n%4 != 0 {
		return g.things()
	}
	for range synonyms {
		t := fact
		t[g.rand.IntN(3)] = g.rand.IntN(len(synonyms))
		if t[0] != t[1] && t[0] != t[2] && t[1] != t[2] && g.take(t) {
			return t
		}
	}
	return g.things()
}

// word is a word for a thing: its first, or with some chance another.
func (g *generator) word(thing int, other float64) string {
	words := synonyms[thing]
	if g.rand.Float64() < other {
		return words[1+g.rand.IntN(len(words)-1)]
	}
	return words[0]
}

func (g *generator) text(t [3]int) string {
	g.rand.Shuffle(3, func(i, j int) { t[i], t[j] = t[j], t[i] })
	reason := synonyms[g.rand.IntN(len(synonyms))][0]
	value := fmt.Sprintf("%c%d", 'a'+rune(g.rand.IntN(26)), g.rand.IntN(10_000))
	shape := shapes[g.rand.IntN(len(shapes))]
	text := fmt.Sprintf(shape, synonyms[t[0]][0], synonyms[t[1]][0], synonyms[t[2]][0], value, reason)
	return strings.ToUpper(text[:1]) + text[1:]
}

func (g *generator) question(t [3]int) string {
	g.rand.Shuffle(3, func(i, j int) { t[i], t[j] = t[j], t[i] })
	shape := questions[g.rand.IntN(len(questions))]
	return fmt.Sprintf(shape, g.word(t[0], g.Paraphrased), g.word(t[1], g.Paraphrased), g.word(t[2], g.Paraphrased))
}
