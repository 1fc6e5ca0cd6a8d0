package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// onlyWhatIsThere refuses methods of what the session does not have. The SDK would answer them with empty lists, and
// declare them.
func (sc *scope) onlyWhatIsThere(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		what, _, _ := strings.Cut(method, "/")
		there := true
		switch what {
		case "prompts":
			there = sc.has("prompt ")
		case "resources":
			there = sc.has("resource ", "template ")
			if method == "resources/subscribe" || method == "resources/unsubscribe" {
				there = there && keeps(req)
			}
		case "completion":
			there = sc.has("prompt ", "template ")
		}
		if !there {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "This server does not have " + method + "."}
		}
		result, err := next(ctx, method, req)
		switch r := result.(type) {
		case *sdk.InitializeResult:
			if r != nil {
				sc.declare(r.Capabilities, keeps(req))
			}
		case *sdk.DiscoverResult:
			if r != nil {
				sc.declare(r.Capabilities, true)
			}
		}
		return result, err
	}
}

// keeps reports whether the client has a session of the protocol, which keeps its subscriptions. A client of revision
// 2026-07-28 has them in a request of their own.
func keeps(req sdk.Request) bool { return req.GetSession().ID() != "" }

// declare leaves out of the capabilities what the session does not have.
func (sc *scope) declare(c *sdk.ServerCapabilities, keeps bool) {
	if c == nil {
		return
	}
	if !sc.has("prompt ", "template ") {
		c.Completions = nil
	}
	if c.Resources != nil && !keeps {
		c.Resources.Subscribe = false
	}
}

// has reports whether the connected servers have something of these kinds.
func (sc *scope) has(kinds ...string) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for key := range sc.parts {
		for _, kind := range kinds {
			if strings.HasPrefix(key, kind) {
				return true
			}
		}
	}
	return false
}
