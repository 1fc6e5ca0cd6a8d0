package modelproxy

import (
	"net/http"

	"github.com/fairlead/fairlead/services/internal/kit/modelapi"
)

// translate answers from a model whose provider speaks another wire.
func (c *call) translate() *modelapi.Failure {
	return refused(http.StatusBadRequest, "the provider of the model %s does not speak this API", c.entry.Name)
}

// estimate counts the tokens of a request where the provider cannot.
func (c *call) estimate() *modelapi.Failure {
	return c.json(map[string]int64{"input_tokens": int64(len(c.body)+3) / 4})
}

// inputBound returns an upper bound of the request's input, in tokens: a token is at least a byte.
func (c *call) inputBound() int64 { return int64(len(c.body)) }
