package mcp

import (
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
)

func TestAGrantIsBoundToThePlaceOfAServer(t *testing.T) {
	command := func(name string, env map[string]string, args ...string) offer {
		return offer{McpServer: &commonv1.McpServer{Name: "x", Transport: &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: name, Args: args, Env: env}}}}
	}
	address := func(url string, headers map[string]string) offer {
		return offer{McpServer: &commonv1.McpServer{Name: "x", Transport: &commonv1.McpServer_Http{Http: &commonv1.McpHttp{Url: url, Headers: headers}}}}
	}
	operator := address("https://a", nil)
	operator.operator = true
	for name, c := range map[string]struct {
		one, other offer
		same       bool
	}{
		"other arguments":         {command("npx", nil, "a"), command("npx", nil, "b"), false},
		"words joined in another": {command("npx", nil, "a b"), command("npx", nil, "a", "b"), false},
		"another command":         {command("npx", nil), command("uvx", nil), false},
		"a command as address":    {command("https://a", nil), address("https://a", nil), false},
		"another address":         {address("https://a", nil), address("https://b", nil), false},
		"another path":            {address("https://a/x", nil), address("https://a/y", nil), false},
		"the operator's":          {address("https://a", nil), operator, false},
		"another token":           {address("https://a", map[string]string{"Authorization": "1"}), address("https://a", map[string]string{"Authorization": "2"}), true},
		"another variable":        {command("npx", map[string]string{"TOKEN": "1"}), command("npx", map[string]string{"TOKEN": "2"}), true},
	} {
		e := entry{definition: "name=1"}
		if same := c.one.binding(e) == c.other.binding(e); same != c.same {
			t.Errorf("%s: bound to the same: %v", name, same)
		}
	}
}
