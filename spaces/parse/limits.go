package parse

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// onLimit is the attribute of <limits> that is no limit: what becomes of a
// thread that hits one.
const onLimit = "on_limit"

// readLimits reads the attributes of <limits>. A limit that is not understood
// would not be enforced, so nothing here is let pass.
func readLimits(doc *item.DirectiveDoc, e *element) error {
	if len(e.children) > 0 {
		return e.children[0].errorf("limits are attributes of <limits>, not elements: %s", said(limitNames()))
	}
	doc.Limits = make(item.LimitSet, len(e.attrs))
	for _, a := range e.attrs {
		if a.Name.Local == onLimit {
			if doc.OnLimit = strings.TrimSpace(a.Value); !slices.Contains(item.OnLimitActions(), doc.OnLimit) {
				return e.errorf("%s=%q is unknown; valid are %s", onLimit, a.Value, said(strings.Join(item.OnLimitActions(), ", ")))
			}
			continue
		}
		name := strings.TrimPrefix(a.Name.Local, "max_")
		if !slices.Contains(item.LimitNames(), name) {
			return e.errorf("limit %q is unknown; valid are %s, and %s", a.Name.Local, said(limitNames()), onLimit)
		}
		if _, twice := doc.Limits[name]; twice {
			return e.errorf("limit %s is given twice, as %s and as max_%s", name, name, name)
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(a.Value), 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
			return e.errorf("limit %s=%q must be a number of 0 or more", a.Name.Local, a.Value)
		}
		if countsThings(name) && value != math.Trunc(value) {
			return e.errorf("limit %s=%q must be a whole number", a.Name.Local, a.Value)
		}
		doc.Limits[name] = value
	}
	return nil
}

// countsThings tells the limits that count from those that measure.
func countsThings(limit string) bool { return limit != "spend" && limit != "duration_seconds" }

func limitNames() string { return strings.Join(item.LimitNames(), ", ") }
