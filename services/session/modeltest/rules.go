package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var (
	toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	callID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// message and block are of the Messages API.
type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   content         `json:"content"`
}

// content is a string or blocks.
type content []block

func (c *content) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*c = content{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(data, (*[]block)(c))
}

// checkMessages checks a conversation and reads from it what scripts need.
func checkMessages(req *Request, messages []message, thinking bool) error {
	if len(messages) == 0 || messages[0].Role != "user" {
		return fmt.Errorf("messages: the first message must use the user role")
	}
	seen := map[string]bool{}
	var open []string // calls of the last assistant message
	for i, m := range messages {
		at := fmt.Sprintf("messages.%d", i)
		if m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("%s.role: must be user or assistant", at)
		}
		if i > 0 && messages[i-1].Role == m.Role {
			return fmt.Errorf("%s: roles must alternate (this fake is stricter than the API)", at)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("%s: content must not be empty", at)
		}
		var err error
		if m.Role == "user" {
			err = checkUser(req, at, m.Content, open)
			open = nil
		} else {
			req.Step++
			open, err = checkAssistant(at, m.Content, seen)
		}
		if err != nil {
			return err
		}
	}
	req.Step++
	if last := messages[len(messages)-1]; last.Role == "assistant" {
		return fmt.Errorf("messages: this model does not support a prefilled assistant message")
	}
	return checkThinking(messages, thinking)
}

func checkUser(req *Request, at string, blocks content, open []string) error {
	others, texts := false, []string(nil)
	answered := map[string]bool{}
	for j, b := range blocks {
		at := fmt.Sprintf("%s.content.%d", at, j)
		if err := checkText(at, b); err != nil {
			return err
		}
		switch b.Type {
		case "tool_result":
			if others {
				return fmt.Errorf("%s: tool_result blocks must come first", at)
			}
			if !contains(open, b.ToolUseID) || answered[b.ToolUseID] {
				return fmt.Errorf("%s: unexpected tool_use_id %q found in tool_result blocks", at, b.ToolUseID)
			}
			answered[b.ToolUseID] = true
			req.LastResult = ""
			for k, c := range b.Content {
				if err := checkText(fmt.Sprintf("%s.content.%d", at, k), c); err != nil {
					return err
				}
				req.LastResult += c.Text
			}
		case "text":
			others = true
			texts = append(texts, b.Text)
		case "image", "document":
			others = true
		default:
			return fmt.Errorf("%s.type: %q is not allowed here", at, b.Type)
		}
	}
	if len(answered) != len(open) {
		return fmt.Errorf("%s: tool_use ids were found without tool_result blocks immediately after: %v", at, open)
	}
	if others {
		req.UserText, req.Step = strings.Join(texts, "\n"), 0
	}
	return nil
}

func checkAssistant(at string, blocks content, seen map[string]bool) (open []string, err error) {
	said := false
	for j, b := range blocks {
		at := fmt.Sprintf("%s.content.%d", at, j)
		if err := checkText(at, b); err != nil {
			return nil, err
		}
		switch b.Type {
		case "thinking", "redacted_thinking":
			if said {
				return nil, fmt.Errorf("%s: thinking must come first", at)
			}
			if b.Type == "thinking" && b.Signature != signature(b.Thinking) {
				return nil, fmt.Errorf("%s: invalid signature in thinking block", at)
			}
		case "text":
			said = true
		case "tool_use":
			said = true
			if !callID.MatchString(b.ID) || seen[b.ID] {
				return nil, fmt.Errorf("%s: tool_use ids must be unique and match %s", at, callID)
			}
			var input map[string]json.RawMessage
			if json.Unmarshal(b.Input, &input) != nil || input == nil {
				return nil, fmt.Errorf("%s.input: should be an object", at)
			}
			seen[b.ID] = true
			open = append(open, b.ID)
		default:
			return nil, fmt.Errorf("%s.type: %q is not allowed here", at, b.Type)
		}
	}
	return open, nil
}

func checkText(at string, b block) error {
	if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
		return fmt.Errorf("%s: text content blocks must be non-empty", at)
	}
	return nil
}

// checkThinking requires that a tool's results follow a message that began with
// thinking.
func checkThinking(messages []message, thinking bool) error {
	n := len(messages)
	if !thinking || n < 2 || messages[n-1].Content[0].Type != "tool_result" {
		return nil
	}
	if t := messages[n-2].Content[0].Type; t != "thinking" && t != "redacted_thinking" {
		return fmt.Errorf("messages.%d.content.0.type: expected thinking or redacted_thinking, but found %s", n-2, t)
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
