package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Context plays a script as a model of the Messages API with a context of this
// many tokens, each of bytesEach bytes of the request. It refuses longer requests
// in the API's own words.
func Context(tokens, bytesEach int, script Script) Script {
	return limited(tokens, bytesEach, script, func(n int) Step {
		return Step{
			Status: http.StatusBadRequest, ErrorType: "invalid_request_error",
			ErrorMessage: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, tokens),
		}
	})
}

// ChatContext is Context for Chat Completions.
func ChatContext(tokens, bytesEach int, script Script) Script {
	return limited(tokens, bytesEach, script, func(n int) Step {
		return Step{
			Status: http.StatusBadRequest, ErrorType: "invalid_request_error", ErrorCode: "context_length_exceeded",
			ErrorMessage: fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", tokens, n),
		}
	})
}

func limited(tokens, bytesEach int, script Script, refuse func(n int) Step) Script {
	return func(r Request) Step {
		body, err := json.Marshal(r.Body)
		if err != nil {
			panic(err) // it was JSON
		}
		if n := (len(body) + bytesEach - 1) / bytesEach; n > tokens {
			return refuse(n)
		}
		return script(r)
	}
}
