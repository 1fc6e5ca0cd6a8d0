package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// missing are the prefixes of methods of capabilities that the server does not have. The SDK would answer them with
// empty lists.
var missing = []string{"prompts/", "resources/", "completion/"}

// onlyTools refuses what is not about tools.
func onlyTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		for _, prefix := range missing {
			if strings.HasPrefix(method, prefix) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "This server has tools, and no " + strings.TrimSuffix(prefix, "/") + "."}
			}
		}
		return next(ctx, method, req)
	}
}
