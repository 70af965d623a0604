package metrics

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// series are the names that a family has in expressions, with its labels.
func (f *family) exported() (names []string) {
	if f.kind == histogram {
		return []string{f.name + "_bucket", f.name + "_sum", f.name + "_count"}
	}
	return []string{f.name}
}

var (
	metricName  = regexp.MustCompile(`\b(?:rye|process)_[a-z_]+`)
	selector    = regexp.MustCompile(`((?:rye|process)_[a-z_]+)\{([^}]*)\}`)
	labelOf     = regexp.MustCompile(`([a-z_]+)(?:=~|!=|!~|=)`)
	grouping    = regexp.MustCompile(`by \(([^)]*)\)`)
	legendLabel = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
)

// Every name and label in the dashboard is one that is told, and every family is shown.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ RefID, Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(Dashboard), &d); err != nil {
		t.Fatal(err)
	}
	families, labels, unseen := map[string]*family{}, map[string]bool{"le": true, "job": true}, map[string]bool{}
	for _, f := range newFamilies().all {
		for _, name := range f.exported() {
			families[name] = f
		}
		for _, label := range f.labels {
			labels[label] = true
		}
		unseen[f.name] = true
	}
	delete(unseen, "rye_build_info")
	for _, name := range metricName.FindAllString(Dashboard, -1) {
		f := families[name]
		if f == nil {
			t.Errorf("%s is not told", name)
			continue
		}
		delete(unseen, f.name)
	}
	for _, found := range selector.FindAllStringSubmatch(strings.ReplaceAll(Dashboard, `\"`, `"`), -1) {
		for _, label := range labelOf.FindAllStringSubmatch(found[2], -1) {
			if f := families[found[1]]; f != nil && !slices.Contains(f.labels, label[1]) && label[1] != "job" {
				t.Errorf("%s has no label %s", found[1], label[1])
			}
		}
	}
	places, ids := map[[2]int]bool{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if places[at] {
					t.Fatalf("%s lies on another panel", p.Title)
				}
				places[at] = true
			}
		}
		for _, target := range p.Targets {
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || strings.Count(target.Expr, "{") != strings.Count(target.Expr, "}") {
				t.Errorf("%s", target.Expr)
			}
			for _, group := range grouping.FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(group[1], ", ") {
					if !labels[label] {
						t.Errorf("%s: no label %s", target.Expr, label)
					}
				}
			}
			for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, label[1]) {
					t.Errorf("%s: %s has gone", target.LegendFormat, label[1])
				}
			}
		}
	}
	if len(unseen) > 0 {
		t.Errorf("not shown: %v", unseen)
	}
}
