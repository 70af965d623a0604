package catalog

import (
	"regexp"
	"strings"
)

// rule says which names are meant. Exactly one of its members is set.
type rule struct {
	Or         []rule  `json:"or"`
	And        []rule  `json:"and"`
	Not        *rule   `json:"not"`
	Equals     *string `json:"equals"`
	StartsWith *string `json:"starts_with"`
	EndsWith   *string `json:"ends_with"`
	Contains   *string `json:"contains"`
	Regex      *string `json:"regex"`
}

// holds reports whether a name in lower case is meant.
func (r *rule) holds(name string) bool {
	switch {
	case r.Equals != nil:
		return name == strings.ToLower(*r.Equals)
	case r.StartsWith != nil:
		return strings.HasPrefix(name, strings.ToLower(*r.StartsWith))
	case r.EndsWith != nil:
		return strings.HasSuffix(name, strings.ToLower(*r.EndsWith))
	case r.Contains != nil:
		return strings.Contains(name, strings.ToLower(*r.Contains))
	case r.Regex != nil:
		// All expressions of the data compile, says a test.
		found, err := regexp.MatchString(*r.Regex, name)
		return err == nil && found
	case r.Not != nil:
		return !r.Not.holds(name)
	}
	for i := range r.Or {
		if r.Or[i].holds(name) {
			return true
		}
	}
	for i := range r.And {
		if !r.And[i].holds(name) {
			return false
		}
	}
	return len(r.And) > 0
}
