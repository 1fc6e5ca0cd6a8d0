package claudecode

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// entry is a line of the CLI's file of a conversation.
type entry struct {
	ParentUUID  *string `json:"parentUuid"`
	IsSidechain bool    `json:"isSidechain"`
	UserType    string  `json:"userType"`
	Cwd         string  `json:"cwd"`
	SessionID   string  `json:"sessionId"`
	Version     string  `json:"version"`
	Type        string  `json:"type"`
	Message     spoken  `json:"message"`
	UUID        string  `json:"uuid"`
	Timestamp   string  `json:"timestamp"`
}

// spoken is a message in an entry.
type spoken struct {
	Role       string  `json:"role"`
	ID         string  `json:"id,omitempty"`
	Type       string  `json:"type,omitempty"`
	Model      string  `json:"model,omitempty"`
	Content    []block `json:"content"`
	StopReason string  `json:"stop_reason,omitempty"`
	Usage      *tokens `json:"usage,omitempty"`
}

// tokens is a usage of the Messages API.
type tokens struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// written is the version that the entries name: the one whose form they have.
const written = "2.1.329"

// transcript returns the file of a conversation, from which the CLI goes on.
func transcript(v *view, groups []group, session string) ([]byte, error) {
	var b bytes.Buffer
	var parent *string
	add := func(m *sessionv1.Message, n int, s spoken) error {
		id := uuidOf(fmt.Sprintf("%s %s %d", session, m.GetName(), n))
		line, err := json.Marshal(entry{
			ParentUUID: parent, UserType: "external", Cwd: "/", SessionID: session, Version: written, Type: s.Role, Message: s, UUID: id,
			Timestamp: m.GetCreateTime().AsTime().UTC().Format(time.RFC3339Nano),
		})
		if err != nil {
			return fmt.Errorf("write the CLI's conversation: %w", err)
		}
		parent = &id
		b.Write(append(line, '\n'))
		return nil
	}
	for _, g := range groups {
		for n, s := range entries(v, g) {
			if err := add(g[0], n, s); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), nil
}

// entries returns the entries of a group.
func entries(v *view, g group) []spoken {
	if g.role() == sessionv1.Role_ROLE_ASSISTANT {
		return answered(v, g[0])
	}
	results, others := g.split()
	var rest []block
	for _, at := range others {
		if b, ok := person(at.m, at.i); ok {
			rest = append(rest, b)
		}
	}
	if len(results) == 0 {
		if len(rest) == 0 {
			return nil
		}
		return []spoken{{Role: "user", Content: rest}}
	}
	var out []spoken
	for i, r := range results {
		var more []block
		if i == len(results)-1 {
			more = rest // the session puts them behind the results again
		}
		o := outline(r, more...)
		out = append(out, spoken{Role: "user", Content: []block{{Type: "tool_result", ToolUseID: toolUseID(r.GetCallId()), Content: o.Content, IsError: o.IsError}}})
	}
	return out
}

// answered returns the entries of an answer of the model: one for each block.
func answered(v *view, m *sessionv1.Message) []spoken {
	blocks := assistant(m.GetBlocks(), state.LastSegment(m.GetTurn()), m.GetStep(), func(_ int, u *sessionv1.ToolUse) string { return toolUseID(u.GetCallId()) })
	reason := "end_turn"
	if len(state.ToolUses(m)) > 0 {
		reason = "tool_use"
	}
	var out []spoken
	for _, b := range blocks {
		out = append(out, spoken{
			Role: "assistant", ID: "msg_" + state.LastSegment(m.GetName()), Type: "message", Model: v.request.Model, Content: []block{b},
			StopReason: reason, Usage: &tokens{},
		})
	}
	return out
}

// uuidOf returns a UUID that a name determines.
func uuidOf(name string) string {
	h := sha256.Sum256([]byte(name))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8: of our own making
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
