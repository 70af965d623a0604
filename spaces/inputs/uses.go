package inputs

// Use is a placeholder of a text. Exactly one of Input and Env is set.
type Use struct {
	Text  string // as it is written
	Input string // name of an input
	Env   string // name of an environment value
	Stays bool   // it stays in the text when there is nothing to put in
}

// Uses lists the placeholders that [Interpolate] finds in a text, in their order.
func Uses(text string) []Use {
	var all []Use
	for _, m := range placeholder().FindAllStringSubmatch(text, -1) {
		all = append(all, Use{Text: m[0], Input: m[1], Env: m[3], Stays: m[2] == ""})
	}
	return all
}
