package metrics

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// ContentType is that of the text that [Collector] writes: version 0.0.4 of
// Prometheus' exposition format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// kind is the type of a family.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// family are the series of one name. Values are whole numbers of a unit, of which per
// make one of what the name says: sums of them are exact.
type family struct {
	name, help string
	kind       kind
	labels     []string
	per        float64 // 0 is 1
	bounds     []int64 // upper ends of the buckets of a histogram, in the unit
	series     map[string]*series
}

// series are the samples of one set of label values.
type series struct {
	values  []string // of the labels
	n       int64    // value, or sum of a histogram
	count   int64    // of a histogram
	buckets []int64  // of a histogram: how many came into each; the last one has no end
	told    bool
}

func (f *family) of(values ...string) *series {
	key := strings.Join(values, "\xff") // no byte of UTF-8
	s := f.series[key]
	if s == nil {
		if f.series == nil {
			f.series = map[string]*series{}
		}
		s = &series{values: values}
		if f.kind == histogram {
			s.buckets = make([]int64, len(f.bounds)+1)
		}
		f.series[key] = s
	}
	return s
}

// add counts. A counter never goes back: a negative n is dropped.
func (f *family) add(n int64, values ...string) {
	if s := f.of(values...); n > 0 {
		s.n = saturated(s.n, n)
	}
}

// set gives a gauge its value.
func (f *family) set(n int64, values ...string) { f.of(values...).n = n }

// observe counts a value of a histogram so many times; a negative one counts as 0.
func (f *family) observe(n, times int64, values ...string) {
	n = max(0, n)
	s := f.of(values...)
	s.n = saturated(s.n, n*times)
	s.count += times
	at, _ := slices.BinarySearch(f.bounds, n)
	s.buckets[at] += times
}

func saturated(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}

// clear forgets the series of a family, so that those that are not there any more are
// not told.
func (f *family) clear() { f.series = nil }

// write appends the family. One without series is left out.
func (f *family) write(out *bytes.Buffer) {
	if len(f.series) == 0 {
		return
	}
	out.WriteString("# HELP " + f.name + " " + escapeHelp(f.help) + "\n# TYPE " + f.name + " " + string(f.kind) + "\n")
	for _, s := range slices.SortedFunc(maps.Values(f.series), func(a, b *series) int { return slices.Compare(a.values, b.values) }) {
		now := s
		if !s.told && f.kind != gauge {
			// It began at 0, and nobody was there to see it: Prometheus does not count
			// as an increase what it has never seen.
			now = &series{values: s.values, buckets: make([]int64, len(s.buckets))}
		}
		s.told = true
		if f.kind == histogram {
			f.writeHistogram(out, now)
			continue
		}
		f.sample(out, "", s.values, "", f.number(now.n))
	}
}

func (f *family) writeHistogram(out *bytes.Buffer, s *series) {
	below := int64(0)
	for i, n := range s.buckets {
		below += n
		end := "+Inf"
		if i < len(f.bounds) {
			end = f.number(f.bounds[i])
		}
		f.sample(out, "_bucket", s.values, end, strconv.FormatInt(below, 10))
	}
	f.sample(out, "_sum", s.values, "", f.number(s.n))
	f.sample(out, "_count", s.values, "", strconv.FormatInt(s.count, 10))
}

// sample writes a line. The bound of a bucket is its label le.
func (f *family) sample(out *bytes.Buffer, suffix string, values []string, le, number string) {
	out.WriteString(f.name + suffix)
	open := byte('{')
	label := func(name, value string) {
		out.WriteByte(open)
		out.WriteString(name + `="` + escapeLabel(value) + `"`)
		open = ','
	}
	for i, name := range f.labels {
		label(name, values[i])
	}
	if le != "" {
		label("le", le)
	}
	if open == ',' {
		out.WriteByte('}')
	}
	out.WriteString(" " + number + "\n")
}

func (f *family) number(n int64) string {
	return strconv.FormatFloat(float64(n)/cmp.Or(f.per, 1), 'g', -1, 64)
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func escapeHelp(text string) string { return helpEscapes.Replace(text) }

func escapeLabel(text string) string { return labelEscapes.Replace(text) }

// maxName is how many bytes of a name a label has.
const maxName = 120

// shown is a name as a label has it: UTF-8 in which nothing is invisible, and not long.
func shown(name string) string {
	if len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, isHidden) {
		return name
	}
	return item.Clip(strings.Map(func(r rune) rune {
		if isHidden(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(name, string(utf8.RuneError))), maxName)
}

func isHidden(r rune) bool { return !unicode.IsPrint(r) }

// other is the label of all names beyond those that have one of their own.
const other = "_other"

// names bounds how many values a label can have: somebody who chooses names cannot
// make series without end.
type names struct {
	most int
	seen map[string]bool
}

func (n *names) of(name string) string {
	name = shown(name)
	switch {
	case name == "" || n.seen[name]:
	case len(n.seen) >= n.most:
		return other
	case n.seen == nil:
		n.seen = map[string]bool{name: true}
	default:
		n.seen[name] = true
	}
	return name
}
