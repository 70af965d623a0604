package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// MaxChain is how many directives a chain may have, the leaf included.
const MaxChain = 10

// The faults of a chain itself.
var (
	ErrCycle        = errors.New("a directive extends itself")
	ErrChainTooLong = fmt.Errorf("it has more than %d directives", MaxChain)
)

// ChainError says why the chain of a directive cannot be used. Err is
// [ErrCycle], [ErrChainTooLong], or why the last of Chain cannot be had.
type ChainError struct {
	Chain []string // ids, from the leaf to the directive that is the trouble
	Err   error
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("the extends chain %s cannot be used: %v", strings.Join(e.Chain, " → "), e.Err)
}

func (e *ChainError) Unwrap() error { return e.Err }

// Link is one directive of a chain.
type Link struct {
	ID      string
	Space   item.Space
	Path    string
	Hash    string // SHA-256 of the file, hex
	Warning string // of the trust gate; empty when all is well, and for the leaf
	Doc     *item.DirectiveDoc
}

// Chain follows extends from the leaf to the root. The caller has asked the trust
// gate about the leaf. Errors: a [*ChainError], or what is wrong with the leaf.
func (c Composer) Chain(leaf *resolve.Found, extends string) ([]Link, error) {
	doc, err := leaf.Directive()
	if err != nil {
		return nil, err
	}
	chain := []Link{linkOf(leaf, doc, "")}
	for extends != "" {
		ids := append(idsOf(chain), extends)
		if slices.Contains(ids[:len(chain)], extends) {
			return nil, &ChainError{Chain: ids, Err: ErrCycle}
		}
		if len(ids) > MaxChain {
			return nil, &ChainError{Chain: ids, Err: ErrChainTooLong}
		}
		next, err := c.ancestor(extends)
		if err != nil {
			return nil, &ChainError{Chain: ids, Err: err}
		}
		chain = append(chain, next)
		extends = next.Doc.Extends
	}
	return chain, nil
}

// ancestor finds, checks and reads a directive that another one extends.
func (c Composer) ancestor(id string) (Link, error) {
	found, err := c.Resolver.Find(item.Directive, id)
	if err != nil {
		return Link{}, err
	}
	decision, err := c.Trust.Check(trust.SubjectOf(found))
	if err != nil {
		return Link{}, err
	}
	doc, err := found.Directive()
	if err != nil {
		return Link{}, err
	}
	return linkOf(found, doc, decision.Warning), nil
}

func linkOf(found *resolve.Found, doc *item.DirectiveDoc, warning string) Link {
	return Link{ID: found.ID, Space: found.Space, Path: found.Path, Hash: found.Hash, Warning: warning, Doc: doc}
}

func idsOf(chain []Link) []string {
	ids := make([]string, len(chain))
	for i, link := range chain {
		ids[i] = link.ID
	}
	return ids
}
