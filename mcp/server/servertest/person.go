package servertest

import "encoding/json"

// Question is what a server asks the person who uses the client.
type Question struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema"`

	// Withdrawn is closed when the server does not want the answer any more. It
	// is nil for revision 2026-07-28, in which the call has ended.
	Withdrawn <-chan struct{} `json:"-"`
}

// Answer is what a person does with a question, or what a broken client makes
// of it. The zero Answer is none: the server is left waiting.
type Answer struct {
	Action  string `json:"action"`
	Content any    `json:"content,omitempty"`
	Err     *Error `json:"-"` // of the client, in place of the rest
}

func (a Answer) none() bool { return a.Action == "" && a.Err == nil }

// asks puts a question to the person, elsewhere, as the reader must go on.
func (c *Client) asks(w wire) {
	if c.person == nil {
		c.t.Errorf("a client without elicitation is asked: %s", w.Params)
		return
	}
	var q Question
	if err := json.Unmarshal(w.Params, &q); err != nil || q.Message == "" || len(q.Schema) == 0 {
		c.t.Errorf("question %s: %v", w.Params, err)
	}
	withdrawn := make(chan struct{})
	q.Withdrawn = withdrawn
	c.mu.Lock()
	c.asked[string(w.ID)] = withdrawn
	c.mu.Unlock()
	go func() {
		a := c.person(q)
		if a.none() {
			return
		}
		response := wire{ID: w.ID, Error: a.Err}
		if a.Err == nil {
			response.Result = c.encode(a)
		}
		c.respond(response)
	}()
}

// withdrawn notes that the server does not want an answer any more.
func (c *Client) withdrawn(w wire) {
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	if err := json.Unmarshal(w.Params, &params); err != nil {
		c.t.Errorf("cancellation %s: %v", w.Params, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if withdrawn, ok := c.asked[string(params.ID)]; ok { // else it is of roots/list
		delete(c.asked, string(params.ID))
		close(withdrawn)
	}
}

// again makes a call again with the answers to what its result asks for. It
// returns nil for a result that asks for nothing.
func (p *Pending) again(result json.RawMessage) *Pending {
	var asking struct {
		Type     string `json:"resultType"`
		State    string `json:"requestState"`
		Requests map[string]struct {
			Method string   `json:"method"`
			Params Question `json:"params"`
		} `json:"inputRequests"`
	}
	c := p.client
	if json.Unmarshal(result, &asking) != nil || asking.Type != "input_required" {
		return nil
	}
	responses := make(map[string]Answer)
	for key, request := range asking.Requests {
		if request.Method != "elicitation/create" || c.person == nil {
			c.t.Fatalf("a client that declares %v is asked for %s", c.capabilities(), request.Method)
		}
		if a := c.person(request.Params); !a.none() {
			responses[key] = a
		}
	}
	return c.call(map[string]any{
		"name": p.tool, "arguments": p.params["arguments"],
		"inputResponses": responses, "requestState": asking.State,
	}, p.tool)
}

func (c *Client) encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		c.t.Errorf("%T cannot be written as JSON: %v", v, err)
	}
	return raw
}
