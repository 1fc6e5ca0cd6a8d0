package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// asked is what a request of the Responses API asks for.
type asked struct{ encrypted bool }

// refusal is a refused request.
type refusal struct {
	status        int
	code, message string
}

func refuse(format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// inputItem is an item of the input.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   []inputPart     `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL string `json:"image_url"`
	FileData string `json:"file_data"`
	Filename string `json:"filename"`
}

// readResponses reads a request and checks the rules that the real API enforces.
func readResponses(body []byte) (req Request, a asked, bad *refusal) {
	var b struct {
		Model        string      `json:"model"`
		Instructions string      `json:"instructions"`
		Input        []inputItem `json:"input"`
		Stream       bool        `json:"stream"`
		Store        *bool       `json:"store"`
		Include      []string    `json:"include"`
		MaxOutput    *int64      `json:"max_output_tokens"`
		Reasoning    struct {
			Effort  string `json:"effort"`
			Summary string `json:"summary"`
		} `json:"reasoning"`
		Tools []struct {
			Type       string `json:"type"`
			Name       string `json:"name"`
			Parameters schema `json:"parameters"`
			Strict     *bool  `json:"strict"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return req, a, refuse("the body is not the JSON of a request: %v", err)
	}
	if err := req.keep(body); err != nil {
		return req, a, refuse("%v", err)
	}
	req.Model, req.System = b.Model, b.Instructions
	a.encrypted = slices.Contains(b.Include, "reasoning.encrypted_content")
	switch {
	case b.Model == "" || !b.Stream:
		return req, a, refuse("model and stream are required by this fake")
	case b.Store == nil || *b.Store:
		return req, a, refuse("this fake stores nothing: store must be false")
	case b.MaxOutput != nil && *b.MaxOutput < 16:
		return req, a, refuse("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *b.MaxOutput)
	case !slices.Contains([]string{"", "auto", "concise", "detailed"}, b.Reasoning.Summary):
		return req, a, refuse("Invalid value: '%s'. Supported values are: 'auto', 'concise', and 'detailed'.", b.Reasoning.Summary)
	}
	for _, field := range []string{"messages", "max_tokens", "max_completion_tokens", "reasoning_effort"} {
		if _, has := req.Body[field]; has {
			return req, a, refuse("Unsupported parameter: '%s'.", field)
		}
	}
	seen := map[string]bool{}
	for i, t := range b.Tools {
		if t.Type != "function" || !toolName.MatchString(t.Name) || seen[t.Name] || t.Parameters.Type != "object" {
			return req, a, refuse("Invalid tools[%d]: not a function with a unique name and an object as parameters", i)
		}
		if (t.Strict == nil || *t.Strict) && t.Parameters.Open != false {
			return req, a, refuse("Invalid schema for function '%s': In context=(), 'additionalProperties' is required to be supplied and to be false.", t.Name)
		}
		seen[t.Name] = true
		req.Tools = append(req.Tools, t.Name)
	}
	return req, a, checkInput(&req, b.Input)
}

// checkInput checks the conversation and reads what scripts need.
func checkInput(req *Request, input []inputItem) *refusal {
	if len(input) == 0 {
		return refuse("Missing required parameter: 'input'.")
	}
	open, calls := map[string]bool{}, map[string]bool{}
	answering := false
	for i, it := range input {
		at := fmt.Sprintf("input[%d]", i)
		fromModel := it.Type == "function_call" || it.Type == "reasoning" || it.Role == "assistant"
		if fromModel && !answering {
			req.Step++
		}
		answering = fromModel
		var bad *refusal
		switch it.Type {
		case "", "message":
			bad = checkMessage(req, at, it)
		case "function_call":
			if it.CallID == "" || len(it.CallID) > 64 || calls[it.CallID] || !toolName.MatchString(it.Name) || it.Arguments == nil {
				return refuse("Invalid '%s': a function_call needs a unique call_id of up to 64 characters, a name and arguments", at)
			}
			open[it.CallID], calls[it.CallID] = true, true
		case "function_call_output":
			if !open[it.CallID] {
				return refuse("No tool call found for function call output with call_id %s.", it.CallID)
			}
			delete(open, it.CallID)
			req.LastResult, bad = partsOf(at+".output", it.Output, "input_text", "input_image", "input_file")
		case "reasoning":
			bad = checkReasoning(at, it, input[i+1:])
		default:
			bad = refuse("Invalid value: '%s'. %s.type is not supported.", it.Type, at)
		}
		if bad != nil {
			return bad
		}
	}
	for id := range open {
		return refuse("No tool output found for function call %s.", id)
	}
	req.Step++
	return nil
}

func checkMessage(req *Request, at string, it inputItem) *refusal {
	switch it.Role {
	case "assistant":
		_, bad := partsOf(at+".content", it.Content, "output_text", "refusal")
		return bad
	case "user":
		text, bad := partsOf(at+".content", it.Content, "input_text", "input_image", "input_file")
		req.UserText, req.Step = text, 0
		return bad
	case "system", "developer":
		_, bad := partsOf(at+".content", it.Content, "input_text")
		return bad
	}
	return refuse("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'. (%s.role)", it.Role, at)
}

// partsOf returns the text of a content, which is a string or parts of these types.
func partsOf(at string, raw json.RawMessage, types ...string) (string, *refusal) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if s == "" && !strings.HasSuffix(at, ".output") {
			return "", refuse("Invalid '%s': empty string.", at)
		}
		return s, nil
	}
	var parts []inputPart
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return "", refuse("Invalid type for '%s': expected a string or a list of parts.", at)
	}
	var texts []string
	for j, p := range parts {
		switch {
		case !slices.Contains(types, p.Type):
			return "", refuse("Invalid value: '%s'. Supported values are: '%s'. (%s[%d].type)", p.Type, strings.Join(types, "' and '"), at, j)
		case p.Type == "input_image" && !strings.HasPrefix(p.ImageURL, "data:image/"):
			return "", refuse("Invalid '%s[%d].image_url'. Expected a valid URL, but got a value with an invalid format.", at, j)
		case p.Type == "input_file" && (p.Filename == "" || !strings.HasPrefix(p.FileData, "data:application/pdf;base64,")):
			return "", refuse("Invalid '%s[%d]': a file needs file_data with a data URL, and a filename", at, j)
		}
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// checkReasoning requires that reasoning has its encrypted content unchanged, and that
// what followed it follows.
func checkReasoning(at string, it inputItem, rest []inputItem) *refusal {
	if it.Encrypted == "" {
		return &refusal{status: http.StatusNotFound, message: fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", it.ID)}
	}
	var summary strings.Builder
	for _, p := range it.Summary {
		if p.Type != "summary_text" {
			return refuse("Invalid value: '%s'. (%s.summary)", p.Type, at)
		}
		summary.WriteString(p.Text)
	}
	if it.Summary == nil {
		return refuse("Missing required parameter: '%s.summary'.", at)
	}
	if it.Encrypted != encrypted(it.ID, summary.String()) {
		return &refusal{status: http.StatusBadRequest, code: "invalid_encrypted_content", message: fmt.Sprintf("The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", it.ID)}
	}
	for _, next := range rest {
		if next.Type == "reasoning" {
			continue
		}
		if next.Type == "function_call" || next.Role == "assistant" {
			return nil
		}
		break
	}
	return refuse("Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
}
