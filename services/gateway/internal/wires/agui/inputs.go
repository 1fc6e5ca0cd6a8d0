package agui

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// input is the body of a request: RunAgentInput. Members that are not here are ignored.
type input struct {
	ThreadID        string            `json:"threadId"`
	RunID           string            `json:"runId"`
	ParentRunID     string            `json:"parentRunId"`
	ProtocolVersion string            `json:"protocolVersion"`
	Messages        []json.RawMessage `json:"messages"`
	State           json.RawMessage   `json:"state"`
	Tools           []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"tools"`
	Context []struct {
		Description string `json:"description"`
		Value       string `json:"value"`
	} `json:"context"`
	Resume []resumeEntry `json:"resume"`

	read []*inMessage
}

// Limits of the lists of a request.
const (
	mostContext = 256
	mostResume  = 256
)

// resumeEntry answers an interrupt.
type resumeEntry struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload"`
	Metadata    struct {
		Action string `json:"action"`
	} `json:"metadata"`
}

// inMessage is a message of a client.
type inMessage struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"toolCallId"`
	Error      string          `json:"error"`
	// SubagentRunID is the call of the subagent that says it.
	SubagentRunID string `json:"subagentRunId"`

	parts    []*commonv1.Content // after parse
	fault    error
	isParsed bool
}

// parse returns the content of the message. It reads it once. The field is the message's.
func (m *inMessage) parse(field string) ([]*commonv1.Content, error) {
	if !m.isParsed {
		m.parts, m.fault = contents(field+".content", m.Content)
		m.isParsed = true
	}
	return m.parts, m.fault
}

// part is a part of a message.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ID       string `json:"id"`
	Metadata struct {
		Filename string `json:"filename"`
		Name     string `json:"name"`
	} `json:"metadata"`
	Source struct {
		Type     string `json:"type"`
		Value    string `json:"value"`
		MimeType string `json:"mimeType"`
	} `json:"source"`
}

// bad returns the error for a member of the body.
func bad(field, what string) error { return problem.BodyMalformed(field, field+" "+what) }

// check reads the messages, and finds what is wrong with a body.
func (in *input) check() error {
	switch {
	case in.ThreadID == "":
		return bad("threadId", "is missing: name the conversation by any text")
	case in.RunID == "":
		return bad("runId", "is missing: give each run an id of its own")
	case in.ProtocolVersion != "" && !strings.HasPrefix(in.ProtocolVersion, "1."):
		return bad("protocolVersion", "is not 1.x; this server speaks 1.0")
	}
	for field, id := range map[string]string{"threadId": in.ThreadID, "runId": in.RunID, "parentRunId": in.ParentRunID} {
		if len(id) > wire.MostID {
			return bad(field, fmt.Sprintf("has %d bytes; send at most %d", len(id), wire.MostID))
		}
	}
	for _, l := range []struct {
		field   string
		n, most int
	}{{"messages", len(in.Messages), wire.MostMessages}, {"tools", len(in.Tools), wire.MostTools}, {"context", len(in.Context), mostContext}, {"resume", len(in.Resume), mostResume}} {
		if err := wire.TooMany(l.field, l.n, l.most); err != nil {
			return err
		}
	}
	for i, raw := range in.Messages {
		field := fmt.Sprintf("messages[%d]", i)
		m := &inMessage{}
		if err := json.Unmarshal(raw, m); err != nil {
			return bad(field, "is no message: "+err.Error())
		}
		if m.ID == "" || m.Role == "" {
			return bad(field, "has no id or no role")
		}
		in.read = append(in.read, m)
	}
	for i, r := range in.Resume {
		if r.InterruptID == "" || r.Status != "resolved" && r.Status != "cancelled" {
			return bad(fmt.Sprintf("resume[%d]", i), "needs an interruptId, and a status, which is resolved or cancelled")
		}
	}
	return nil
}

// old reports whether the client is of the protocol before 1.0.
func (in *input) old() bool { return in.ProtocolVersion == "" }

// ours begins no id of a client: messages of ours have ids with the turn's id, which has this length.
func ours(id string) bool {
	turn, _, ok := strings.Cut(id, "-")
	return ok && len(turn) == 26
}

// created returns the request for a turn with the new messages of the client: those of the user at the end.
func (in *input) created(skip int) (*sessionv1.CreateTurnRequest, error) {
	req := &sessionv1.CreateTurnRequest{}
	for i := in.firstNew() + skip; i < len(in.read); i++ {
		if in.read[i].Role != "user" {
			continue
		}
		content, err := in.read[i].parse(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		req.Content = append(req.Content, content...)
		if len(req.Content) > wire.MostContent {
			return nil, bad("messages", fmt.Sprintf("have more than %d new parts of the user at their end; send fewer", wire.MostContent))
		}
	}
	if len(req.Content) == 0 {
		return nil, bad("messages", "has no new message of the user at its end; send one, or resume with the answer to an interrupt")
	}
	for i, t := range in.Tools {
		if len(t.Parameters) > 0 && !bytes.HasPrefix(bytes.TrimSpace(t.Parameters), []byte("{")) && string(t.Parameters) != "null" {
			return nil, bad(fmt.Sprintf("tools[%d].parameters", i), "is no JSON Schema: it has to be an object")
		}
		tool := &sessionv1.ClientTool{Name: t.Name, Description: t.Description}
		if string(t.Parameters) != "null" {
			tool.InputSchemaJson = string(t.Parameters)
		}
		req.ClientTools = append(req.ClientTools, tool)
	}
	if c := in.context(); c != "" {
		req.Options = &sessionv1.TurnOptions{Context: c}
	}
	return req, nil
}

// firstNew returns the index of the first of the messages at the end that a user, a developer or the system says.
func (in *input) firstNew() int {
	i := len(in.read)
	for i > 0 {
		switch m := in.read[i-1]; {
		case m.Role == "user", (m.Role == "system" || m.Role == "developer") && !ours(m.ID):
			i--
		default:
			return i
		}
	}
	return i
}

// context returns what the model reads besides the agent's prompt: the application's context, its own instructions,
// and its state.
func (in *input) context() string {
	var parts []string
	for _, m := range in.read {
		var s string
		if (m.Role == "system" || m.Role == "developer") && !ours(m.ID) && json.Unmarshal(m.Content, &s) == nil && s != "" {
			parts = append(parts, s)
		}
	}
	for _, c := range in.Context {
		parts = append(parts, c.Description+":\n"+c.Value)
	}
	if s := in.state(); len(s) > 0 {
		if b, err := json.Marshal(s); err == nil {
			parts = append(parts, "The state of the application:\n"+string(b))
		}
	}
	return strings.Join(parts, "\n\n")
}

// state returns the client's state without our part of it; nil if it is no object.
func (in *input) state() map[string]json.RawMessage {
	s := map[string]json.RawMessage{}
	if len(in.State) > 0 && json.Unmarshal(in.State, &s) != nil {
		return nil
	}
	if s == nil { // it was null
		s = map[string]json.RawMessage{}
	}
	delete(s, "fairlead")
	return s
}

// hasOwn reports whether the client's state has our part.
func (in *input) hasOwn() bool {
	var s struct {
		Fairlead map[string]json.RawMessage `json:"fairlead"`
	}
	return json.Unmarshal(in.State, &s) == nil && s.Fairlead != nil
}

// contents returns the content of a message: text, or parts.
func contents(field string, raw json.RawMessage) ([]*commonv1.Content, error) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return textContent(s), nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, bad(field, "is neither a text nor a list of parts")
	}
	if err := wire.TooMany(field, len(parts), wire.MostContent); err != nil {
		return nil, err
	}
	var all []*commonv1.Content
	for i, p := range parts {
		c, err := p.content(fmt.Sprintf("%s[%d]", field, i))
		if err != nil {
			return nil, err
		}
		all = append(all, c...)
	}
	return all, nil
}

func textContent(s string) []*commonv1.Content {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []*commonv1.Content{{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}}
}

// content returns what the model gets of a part. The model learns of what it cannot take.
func (p part) content(field string) ([]*commonv1.Content, error) {
	if p.Type == "text" {
		return textContent(p.Text), nil
	}
	m := &commonv1.Media{MediaType: p.Source.MimeType, Title: p.Metadata.Filename + p.Metadata.Name}
	value := p.Source.Value
	if rest, ok := strings.CutPrefix(value, "data:"); ok {
		head, data, _ := strings.Cut(rest, ",")
		mime, encoded := strings.CutSuffix(head, ";base64")
		if !encoded {
			return nil, bad(field+".source.value", "is a data URL without base64")
		}
		m.MediaType, value, p.Source.Type = mime, data, "data"
	}
	switch {
	case p.Type != "image" && p.Type != "document":
		return textContent(fmt.Sprintf("(The user sent %s %s, which cannot be read here.)", article(p.Type), p.Source.MimeType)), nil
	case p.Source.Type == "data":
		data, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return nil, bad(field+".source.value", "is not base64: "+err.Error())
		}
		m.Data = data
	case strings.HasPrefix(value, "file://"), strings.HasPrefix(value, "workspace://"):
		m.Uri = value
	default: // the server fetches nothing
		return textContent(fmt.Sprintf("(The user sent %s: %s)", article(p.Type), value)), nil
	}
	if p.Type == "image" {
		return []*commonv1.Content{{Kind: &commonv1.Content_Image{Image: m}}}, nil
	}
	return []*commonv1.Content{{Kind: &commonv1.Content_Document{Document: m}}}, nil
}

func article(kind string) string {
	if kind == "image" || kind == "audio" {
		return "an " + kind
	}
	return "a " + kind
}

// results returns the client's results of its own tools, which end its messages.
func (in *input) results() map[string]*inMessage {
	all := map[string]*inMessage{}
	for i := len(in.read) - 1; i >= 0; i-- {
		switch m := in.read[i]; {
		case m.Role == "tool" && m.ToolCallID != "" && m.ID != m.ToolCallID+"-result":
			all[m.ToolCallID] = m
		case m.Role == "assistant":
			return all
		}
	}
	return all
}

// interruptRef is an interrupt's id, taken apart.
type interruptRef struct {
	turn, call, question string
	seq                  int64
}

// parseInterrupt takes an interrupt's id apart; false if it is none of ours.
func parseInterrupt(id string) (r interruptRef, ok bool) {
	turn, rest, _ := strings.Cut(id, "/")
	seq, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return r, false
	}
	r.turn = turn
	if _, err := fmt.Sscanf(seq, "%d", &r.seq); err != nil || r.seq < 1 {
		return r, false
	}
	r.call, r.question, _ = strings.Cut(rest, "/")
	return r, r.turn != "" && r.call != ""
}

// key names what is asked, as ask.key does.
func (r interruptRef) key() string {
	if r.question != "" {
		return r.call + "/" + r.question
	}
	return r.call
}
