package page

import (
	"context"
	"net/http"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/costs"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// costs answers with what was used by directive, by model or by day.
func (p *Page) costs(ctx context.Context, c *call) (any, error) {
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	req, err := costsOf(c)
	if err != nil {
		return nil, err
	}
	return project.Control.Costs.Table(ctx, req)
}

// costsOverTime answers with what was used when.
func (p *Page) costsOverTime(ctx context.Context, c *call) (any, error) {
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	req, err := costsOf(c)
	if err != nil {
		return nil, err
	}
	return project.Control.Costs.OverTime(ctx, req)
}

// mostZone is how far a zone is from UTC at most, in minutes.
const mostZone = 14 * 60

// costsOf reads which costs are asked for. Days are those of the page.
func costsOf(c *call) (costs.Request, error) {
	zone, err := zoneOf(c)
	if err != nil {
		return costs.Request{}, err
	}
	return costs.Request{
		By: costs.By(c.query("by")), Since: c.query("since"), Until: c.query("until"), Bucket: costs.Bucket(c.query("bucket")), Exact: c.flag("exact"),
		Zone: zone,
	}, nil
}

// zoneOf is the zone of the page: by its name, whose clocks change, or, where this machine
// does not know that one, by how many minutes its clock is ahead of UTC now.
func zoneOf(c *call) (*time.Location, error) {
	tz, err := c.number("tz")
	if err != nil {
		return nil, err
	}
	if tz < -mostZone || tz > mostZone {
		return nil, refuse(http.StatusBadRequest, tool.CodeBadArguments, "tz must be minutes from UTC, at most %d", mostZone)
	}
	if name := c.query("zone"); name != "" && name != time.Local.String() {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return time.FixedZone("", int(tz)*60), nil
}
