package search

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search/query"
)

// Bounds of the options of a query.
const (
	MaxFuzzy     = 3
	MaxNear      = 1000
	maxFilters   = 16
	maxValues    = 100
	maxFilterLen = 256
)

// OptionError says that an option of a query is not valid.
type OptionError struct {
	Option string // its name as models give it
	Reason string // what is wrong and what is valid
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Reason }

// Fields lists the fields of a query.
func Fields() []string { return []string{"title", "name", "description", "category", "body"} }

// fieldNames are other names of fields, under which they stand in files.
var fieldNames = map[string]string{"content": "body", "text": "body", "id": "name", "tags": "category"}

// lookup is a query that has been understood.
type lookup struct {
	Query
	text    string // of which an id or a name may be the whole
	parts   []part
	within  scope
	filters []filter
}

// part is a query with the fields it is about; none are all.
type part struct {
	node   query.Node
	fields []string
}

func newLookup(q Query) (*lookup, error) {
	l := &lookup{Query: q, text: strings.Trim(strings.TrimSpace(q.Text), `"`)}
	if l.Limit <= 0 {
		l.Limit = DefaultLimit
	}
	l.Limit = min(l.Limit, MaxLimit)
	l.Offset = max(l.Offset, 0)
	var err error
	if l.within, err = parseScope(q.Scope); err != nil {
		return nil, err
	}
	l.within.threads = l.within.threads || q.Threads
	if err := l.checkOptions(); err != nil {
		return nil, err
	}
	if l.parts, err = parts(q); err != nil {
		return nil, err
	}
	l.filters, err = parseFilters(q.Filters)
	return l, err
}

func (l *lookup) checkOptions() error {
	if l.Sort == "" {
		l.Sort = ByScore
	}
	switch {
	case !slices.Contains(Sorts(), l.Sort):
		return &OptionError{"sort_by", fmt.Sprintf("%q is no order; valid are score, date and name", item.Shown(string(l.Sort)))}
	case l.Source != "" && !slices.Contains(item.Spaces(), l.Source):
		return &OptionError{"source", fmt.Sprintf("%q is no space; valid are project, user and system", item.Shown(string(l.Source)))}
	case l.Fuzzy < 0 || l.Fuzzy > MaxFuzzy:
		return &OptionError{"fuzzy", fmt.Sprintf("max_distance is %d; valid is 1 to %d letters", l.Fuzzy, MaxFuzzy)}
	case l.Near < 0 || l.Near > MaxNear:
		return &OptionError{"proximity", fmt.Sprintf("max_distance is %d; valid is 1 to %d words", l.Near, MaxNear)}
	}
	return nil
}

// parts are the query and those of single fields. Beside the latter a query may be
// left out.
func parts(q Query) ([]part, error) {
	fields, err := knownFields(q.Fields)
	if err != nil {
		return nil, err
	}
	var all []part
	if strings.TrimSpace(q.Text) != "" || len(q.Where) == 0 && len(q.Filters) == 0 {
		node, err := query.Parse(q.Text)
		if err != nil {
			return nil, err
		}
		all = append(all, part{node, fields})
	}
	for _, name := range slices.Sorted(maps.Keys(q.Where)) {
		field, err := knownFields([]string{name})
		if err != nil {
			return nil, err
		}
		node, err := query.Parse(q.Where[name])
		if err != nil {
			return nil, &OptionError{"fields." + field[0], err.Error()}
		}
		all = append(all, part{node, field})
	}
	return all, nil
}

func knownFields(names []string) ([]string, error) {
	var fields []string
	for _, name := range names {
		if other, ok := fieldNames[name]; ok {
			name = other
		}
		if !slices.Contains(Fields(), name) {
			return nil, &OptionError{"fields", fmt.Sprintf("%q is no field; valid are %s", item.Shown(name), strings.Join(Fields(), ", "))}
		}
		if !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields, nil
}

// terms are the words and phrases that hits may have, for their previews.
func (l *lookup) terms() []query.Node {
	var all []query.Node
	for _, p := range l.parts {
		all = append(all, p.node.Terms()...)
	}
	return all
}

// filter is a fact that items have to have.
type filter struct {
	key    string
	values []string // any of them; with an operator one
	op     string   // "", "!", "<", "<=", ">" or ">="
	at     int64    // of date_from and date_to, microseconds
}

// Filters on when a file was changed.
const (
	dateFrom = "date_from"
	dateTo   = "date_to"
)

func parseFilters(given map[string][]string) ([]filter, error) {
	if len(given) > maxFilters {
		return nil, &OptionError{"filters", fmt.Sprintf("more than %d", maxFilters)}
	}
	var all []filter
	for _, key := range slices.Sorted(maps.Keys(given)) {
		f, err := parseFilter(strings.ToLower(key), given[key])
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func parseFilter(key string, values []string) (filter, error) {
	fail := func(reason string) (filter, error) {
		return filter{}, &OptionError{"filters." + item.Shown(key), reason}
	}
	f := filter{key: key, values: values}
	for _, v := range values {
		if len(v) > maxFilterLen {
			return fail(fmt.Sprintf("longer than %d bytes", maxFilterLen))
		}
	}
	switch {
	case len(values) > maxValues:
		return fail(fmt.Sprintf("more than %d values", maxValues))
	case len(values) == 0:
		return fail("no value; give one, or a list of which one has to match")
	case key == dateFrom || key == dateTo:
		at, err := parseDate(values[0], key == dateTo)
		if err != nil || len(values) > 1 {
			return fail("no date; valid is 2026-01-31 or 2026-01-31T12:00:00Z")
		}
		f.at = at.UnixMicro()
	case len(values) == 1:
		for _, op := range []string{"!", "<=", ">=", "<", ">"} {
			if rest, ok := strings.CutPrefix(values[0], op); ok && strings.TrimSpace(rest) != "" {
				f.op, f.values = op, []string{strings.TrimSpace(rest)}
				break
			}
		}
	}
	return f, nil
}

// parseDate reads a day or a time. A day that is an end is taken whole.
func parseDate(text string, end bool) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if end {
		day = day.AddDate(0, 0, 1).Add(-time.Microsecond)
	}
	return day, err
}

// holds reports whether a fact is one that a filter with an operator wants.
func (f filter) holds(value string) bool {
	order := compareVersions(value, f.values[0])
	switch f.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

// compareVersions compares numbers between dots as numbers, and the rest as text.
func compareVersions(a, b string) int {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(left), len(right)) {
		x, y := "0", "0"
		if i < len(left) {
			x = left[i]
		}
		if i < len(right) {
			y = right[i]
		}
		m, errX := strconv.Atoi(x)
		n, errY := strconv.Atoi(y)
		switch {
		case errX == nil && errY == nil && m != n:
			return m - n
		case (errX != nil || errY != nil) && x != y:
			return strings.Compare(x, y)
		}
	}
	return 0
}
