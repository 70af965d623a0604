package scripted

import (
	"errors"
	"fmt"
)

// check refuses a turn whose parts contradict each other.
func (t *turn) check() error {
	if t.Times < 0 || t.Match.Turn < 0 {
		return errors.New("times and turn count from 1")
	}
	if t.CutAfter != nil && *t.CutAfter < 0 {
		return errors.New("cut_after counts from 0")
	}
	if u := t.Usage; u != nil && min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
		return errors.New("usage must not be negative")
	}
	for _, call := range t.ToolCalls {
		if call.Name == "" {
			return errors.New("a tool call needs a name")
		}
		if call.Input.value != nil && call.InputJSON.set() {
			return fmt.Errorf("tool call %s has both input and input_json", call.Name)
		}
	}
	if err := errors.Join(t.checkError(), t.checkRaw()); err != nil {
		return err
	}
	if !t.hasContent() && t.Error == nil && t.Raw == nil && !t.Hang && t.CutAfter == nil {
		return errors.New("the turn does nothing; give it text, tool_calls, error, raw, hang or cut_after")
	}
	return nil
}

func (t *turn) checkRaw() error {
	switch raw := t.Raw; {
	case raw == nil:
		return nil
	case t.hasContent() || t.Error != nil || t.Hang || t.CutAfter != nil:
		return errors.New("raw is the whole answer; cut_after and hang stand within it")
	case raw.Status != 0 && (raw.Status < 200 || raw.Status > 599):
		return fmt.Errorf("raw needs a status from 200 to 599, not %d", raw.Status)
	case raw.CutAfter != nil && (*raw.CutAfter < 0 || *raw.CutAfter > len(raw.Body)):
		return fmt.Errorf("cut_after counts the bytes of the body, 0 to %d", len(raw.Body))
	}
	return nil
}

func (t *turn) checkError() error {
	e := t.Error
	switch {
	case e == nil:
		return nil
	case t.Hang || t.CutAfter != nil:
		return errors.New("error cannot stand beside hang or cut_after")
	case e.After != nil && (e.Status != 0 || len(e.Headers) > 0):
		return errors.New("an error inside an answer (after) has no status and no headers of its own")
	case e.After != nil && *e.After < 1:
		return errors.New("after counts from 1; leave it out for an error instead of an answer")
	case e.After == nil && (e.Status < 400 || e.Status > 599):
		return fmt.Errorf("error needs a status from 400 to 599, not %d", e.Status)
	case e.After == nil && t.hasContent():
		return errors.New("error replaces the answer; with after: n it comes inside one")
	}
	return nil
}

func (t *turn) hasContent() bool {
	return t.Text.set() || t.Reasoning.set() || len(t.ToolCalls) > 0
}
