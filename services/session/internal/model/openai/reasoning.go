package openai

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
	"github.com/fairlead/fairlead/services/session/internal/model/transport"
)

// When reasoning is returned to the server that sent it.
const (
	Auto   = "auto"   // within a tool loop, until the server refuses it or wants more
	Always = "always" // with every message of the model
	Never  = "never"
)

// level selects the messages with which reasoning is returned.
type level int32

const (
	none level = iota // with no message
	loop              // with those of the current tool loop
	all               // with every one; empty where a message with calls has none
)

func firstLevel(setting string) level {
	switch setting {
	case Always:
		return all
	case Never:
		return none
	}
	return loop
}

// opaque is the provider data of a block: what is returned beside its text.
type opaque struct {
	Model   string            `json:"model"`
	Field   string            `json:"field,omitempty"`         // of the text of thinking
	Details []json.RawMessage `json:"details,omitempty"`       // reasoning_details
	Extra   json.RawMessage   `json:"extra_content,omitempty"` // of a tool call
}

// own returns the provider data of a block, if the provider and model of this
// request sent it.
func (m *chat) own(modelName string, b *sessionv1.Block) (opaque, bool) {
	var o opaque
	d := b.GetProviderData()
	if d.GetProvider() != m.cfg.Provider || json.Unmarshal(d.GetData(), &o) != nil || o.Model != modelName || o.Model == "" {
		return opaque{}, false
	}
	return o, true
}

// keep returns the provider data for a block of this answer.
func (a *answer) keep(o opaque) *sessionv1.ProviderData {
	o.Model = a.model
	data, err := json.Marshal(o)
	if err != nil { // extra content was JSON when it came
		return nil
	}
	return &sessionv1.ProviderData{Provider: a.provider, Data: data}
}

// appendReasoning writes the fields of a message of the model that hold its reasoning.
// demanded says that a field is required, even without reasoning.
func (m *chat) appendReasoning(buf []byte, r model.Request, blocks []*sessionv1.Block, demanded bool) []byte {
	var text strings.Builder
	var details []json.RawMessage
	field := ""
	for _, b := range blocks {
		o, ok := m.own(r.Model, b)
		if b.GetThinking() == nil || !ok {
			continue
		}
		text.WriteString(b.GetThinking().GetText())
		details = append(details, o.Details...)
		if o.Field != "" {
			field = o.Field
		}
	}
	if field == "" && demanded && details == nil {
		field = "reasoning_content"
	}
	switch field {
	case "reasoning_content", "reasoning":
		buf = append(append(buf, `,"`...), field...)
		buf = prompt.AppendString(append(buf, `":`...), text.String())
	}
	if details != nil {
		buf = append(buf, `,"reasoning_details":[`...)
		for _, d := range details {
			buf = append(prompt.Next(buf), d...)
		}
		buf = append(buf, ']')
	}
	return buf
}

// trial is a request that is tried with different levels of reasoning.
type trial struct {
	level level
	tried [all + 1]bool
	sent  []byte
	err   error
}

var (
	aboutReasoning = regexp.MustCompile(`\breasoning(_content|_details)?\b`)
	rejectedField  = regexp.MustCompile(`(?i)unknown|unexpected|unrecogni|not permitted|not allowed|not support|unsupported|extra|additional|invalid|must not|should not|remove`)
	wanted         = regexp.MustCompile(`(?i)missing|require|must|pass(ed)? back|provide|expected`)
)

// next selects another level after the server refused the request. It returns
// false if the refusal is not about reasoning, or no level is left.
func (t *trial) next() bool {
	var e *model.Error
	var told *transport.ReportedError
	if !errors.As(t.err, &e) || e.Kind != model.Refused || !errors.As(t.err, &told) || !aboutReasoning.MatchString(told.Message) {
		return false
	}
	t.tried[t.level] = true
	order := []level{none, all}
	if !rejectedField.MatchString(told.Message) && wanted.MatchString(told.Message) {
		order = []level{all, loop}
	}
	for _, l := range order {
		if !t.tried[l] {
			t.level = l
			return true
		}
	}
	return false
}

// mergeDetails joins the pieces of reasoning details. Adjacent pieces of one
// detail have equal type and index.
func mergeDetails(pieces []json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	var open map[string]any
	texts := map[string]*strings.Builder{}
	closeOpen := func() {
		for key, b := range texts {
			open[key] = b.String()
		}
		if raw, err := json.Marshal(open); err == nil && open != nil {
			out = append(out, raw)
		}
		open, texts = nil, map[string]*strings.Builder{}
	}
	for _, p := range pieces {
		var d map[string]any
		if json.Unmarshal(p, &d) != nil {
			continue
		}
		if open == nil || d["index"] == nil || d["index"] != open["index"] || d["type"] != open["type"] {
			closeOpen()
			open = map[string]any{}
		}
		for key, v := range d {
			s, isText := v.(string)
			switch {
			case isText && (key == "text" || key == "summary" || key == "data"):
				if texts[key] == nil {
					texts[key] = &strings.Builder{}
				}
				texts[key].WriteString(s)
			case v != nil:
				open[key] = v
			}
		}
	}
	closeOpen()
	return out
}
