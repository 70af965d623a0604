package chain

// Given takes the values that the templates of the plan are filled with: the
// variables of the environment, and the parameters together with what is known of
// the tool. It returns the plan.
func (p *Plan) Given(variable func(name string) (string, bool), params map[string]any) *Plan {
	p.values = values{variable, params}
	return p
}
