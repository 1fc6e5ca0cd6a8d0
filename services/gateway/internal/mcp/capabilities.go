package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// onlyWhatIsThere refuses methods of what the session does not have. The SDK would answer them with empty lists.
func (sc *scope) onlyWhatIsThere(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		what, _, _ := strings.Cut(method, "/")
		there := true
		switch what {
		case "prompts":
			there = sc.has("prompt ")
		case "resources":
			there = sc.has("resource ", "template ") && method != "resources/subscribe" && method != "resources/unsubscribe"
		case "completion":
			there = false
		}
		if !there {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "This server does not have " + method + "."}
		}
		return next(ctx, method, req)
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
