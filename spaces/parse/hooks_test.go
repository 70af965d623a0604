package parse_test

import (
	"reflect"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestHooks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, xml string
		want      item.Hook
	}{
		{
			"action by attributes",
			`<hook id="h" event="error"><description> why </description>
				<condition path="a.b" op="eq" value="true"/><condition path="c" op="exists"/>
				<action primary="fetch" item_type="knowledge" item_id="agent/${x}"/></hook>`,
			item.Hook{
				ID: "h", Event: "error", Description: "why",
				Conditions: []item.Condition{{Path: "a.b", Op: "eq", Value: true}, {Path: "c", Op: "exists"}},
				Actions:    []item.Action{{Primary: "fetch", ItemType: "knowledge", ItemID: "agent/${x}"}},
			},
		},
		{
			"values typed as written",
			`<hook event="e"><condition path="p" op="lt" value="3"/><condition path="p" op="lt" value="0.5"/>
				<condition path="p" op="eq" value="FALSE"/><condition path="p" op="eq" value="3 days"/>
				<condition path="p" op="eq" value=""/><condition path="p" op="eq" value="inf"/>
				<execute item_id="a"><param name="n" value="7"/><param name="t"> 7 </param></execute></hook>`,
			item.Hook{
				Event: "e",
				Conditions: []item.Condition{
					{Path: "p", Op: "lt", Value: int64(3)}, {Path: "p", Op: "lt", Value: 0.5},
					{Path: "p", Op: "eq", Value: false}, {Path: "p", Op: "eq", Value: "3 days"},
					{Path: "p", Op: "eq", Value: ""}, {Path: "p", Op: "eq", Value: "inf"},
				},
				Actions: []item.Action{{Primary: "execute", ItemID: "a", Params: map[string]any{"n": int64(7), "t": "7"}}},
			},
		},
		{
			"calls nested in an action",
			`<hook event="e" wrap="true" timeout="2.5"><action><execute item_type="tool" item_id="a"><param name="p">
				<param name="q">v</param></param></execute><set_extends>b/c</set_extends></action></hook>`,
			item.Hook{
				Event: "e", Wrap: pointer(true), Timeout: 2.5,
				Actions: []item.Action{
					{Primary: "execute", ItemType: "tool", ItemID: "a", Params: map[string]any{"p": map[string]any{"q": "v"}}},
					{SetExtends: "b/c"},
				},
			},
		},
		{
			"set_extends as attribute and as child",
			`<hook event="resolve_extends"><action set_extends="a"/><set_extends>b</set_extends></hook>`,
			item.Hook{Event: "resolve_extends", Actions: []item.Action{{SetExtends: "a"}, {SetExtends: "b"}}},
		},
		{
			"short form",
			`<hook><when>cost.current > 0.8</when><execute item_type="directive"> warn/user </execute>
				<inputs><level>${x}</level><input name="reason">high</input></inputs></hook>`,
			item.Hook{
				When: "cost.current > 0.8",
				Actions: []item.Action{{Primary: "execute", ItemType: "directive", ItemID: "warn/user",
					Params: map[string]any{"level": "${x}", "reason": "high"}}},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hooks := readDirective(t, meta("<hooks>\n"+tt.xml+"</hooks>")).Hooks
			tt.want.Line = 6
			if len(hooks) != 1 || !reflect.DeepEqual(hooks[0], tt.want) {
				t.Errorf("got\n%+v\nwant\n%+v", hooks, tt.want)
			}
		})
	}
}

func pointer[T any](v T) *T { return &v }
