package responses

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/internal/kit/media"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
)

// opaque is the provider data of a block.
type opaque struct {
	Model string `json:"model"`
	// Reasoning goes back with the text of thinking.
	Reasoning *reasoning `json:"reasoning,omitempty"`
	// Phase of a text goes back with it: models tell comments and answers apart by it.
	Phase string `json:"phase,omitempty"`
}

// reasoning is a reasoning item as it goes back. Open models have their reasoning as
// Content; OpenAI's have Encrypted content.
type reasoning struct {
	ID        string   `json:"id"`
	Summary   []string `json:"summary,omitempty"`
	Content   []string `json:"content,omitempty"`
	Encrypted string   `json:"encrypted,omitempty"`
}

// usable reports whether the server accepts the item: it stores none.
func (r *reasoning) usable() bool {
	return r != nil && r.ID != "" && (r.Encrypted != "" || len(r.Content) > 0)
}

// own returns a function that reports whether a block is reasoning that may go back
// to a model.
func (m *Model) own(modelName string, f form) func(*sessionv1.Block) bool {
	return func(b *sessionv1.Block) bool {
		d := b.GetProviderData()
		return f&noReplay == 0 && m.cfg.Replay != ReplayNone && d.GetProvider() == m.cfg.Provider && read(b).Model == modelName && read(b).Reasoning.usable()
	}
}

// read returns the provider data of a block; it is empty for data of another form.
func read(b *sessionv1.Block) (o opaque) {
	if d := b.GetProviderData().GetData(); len(d) == 0 || json.Unmarshal(d, &o) != nil {
		return opaque{}
	}
	return o
}

// input is the request in the making, and the blocks that each of its items is made of.
type input struct {
	conversation *prompt.Conversation
	buf          []byte
	sent         [][]*sessionv1.Block
}

// item begins an item.
func (in *input) item(begin string, from ...*sessionv1.Block) {
	in.buf = append(prompt.Next(in.buf), begin...)
	in.sent = append(in.sent, from)
}

// field appends a field that is a text.
func (in *input) field(name, value string) {
	in.buf = append(append(append(in.buf, `,"`...), name...), `":`...)
	in.buf = prompt.AppendString(in.buf, value)
}

func (in *input) tools(tools []model.Tool) (err error) {
	if len(tools) == 0 {
		return nil
	}
	in.buf = append(in.buf, `,"tools":[`...)
	for _, t := range tools { // strict is true unless it is sent: it refuses most schemas
		in.buf = append(prompt.Next(in.buf), `{"type":"function","strict":`...)
		in.buf = strconv.AppendBool(in.buf, t.Strict)
		in.field("name", t.Name)
		if t.Description != "" {
			in.field("description", t.Description)
		}
		if in.buf, err = t.AppendSchema(append(in.buf, `,"parameters":`...)); err != nil {
			return err
		}
		in.buf = append(in.buf, '}')
	}
	in.buf = append(in.buf, ']')
	return nil
}

// assistant writes the items of a message of the model. The API refuses reasoning
// without the text or call that followed it.
func (in *input) assistant(blocks []*sessionv1.Block, replay bool) {
	last := len(blocks) - 1
	for last >= 0 && blocks[last].GetThinking() != nil {
		last--
	}
	for _, b := range blocks[:last+1] {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Thinking:
			if replay {
				in.reasoning(read(b).Reasoning)
			}
		case *sessionv1.Block_Content:
			if t := k.Content.GetText(); t != nil {
				in.item(`{"type":"message","role":"assistant"`)
				if phase := read(b).Phase; phase != "" {
					in.field("phase", phase)
				}
				in.field("content", t.GetText())
				in.buf = append(in.buf, '}')
			}
		case *sessionv1.Block_ToolUse:
			in.item(`{"type":"function_call"`)
			in.field("call_id", in.conversation.ID(k.ToolUse.GetCallId()))
			in.field("name", k.ToolUse.GetTool())
			in.field("arguments", string(prompt.Arguments(k.ToolUse.GetArgumentsJson())))
			in.buf = append(in.buf, '}')
		}
	}
}

func (in *input) reasoning(r *reasoning) {
	in.item(`{"type":"reasoning"`)
	in.field("id", r.ID)
	if r.Encrypted != "" {
		in.field("encrypted_content", r.Encrypted)
	}
	texts := func(name, kind string, texts []string) {
		in.buf = append(append(append(in.buf, `,"`...), name...), `":[`...)
		for _, s := range texts {
			in.buf = append(append(prompt.Next(in.buf), `{"type":`...), kind...)
			in.field("text", s)
			in.buf = append(in.buf, '}')
		}
		in.buf = append(in.buf, ']')
	}
	texts("summary", `"summary_text"`, r.Summary)
	if len(r.Content) > 0 {
		texts("content", `"reasoning_text"`, r.Content)
	}
	in.buf = append(in.buf, '}')
}

// user writes an item for each result, and then a message with everything else.
func (in *input) user(blocks []*sessionv1.Block) {
	var said []*sessionv1.Block
	for _, b := range blocks {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_ToolResult:
			in.result(b, k.ToolResult)
		case *sessionv1.Block_Content:
			said = append(said, b)
		}
	}
	if len(said) == 0 {
		return
	}
	in.item(`{"type":"message","role":"user","content":[`, said...)
	for _, b := range said {
		in.content(b.GetContent())
	}
	in.buf = append(in.buf, "]}"...)
}

// result writes a tool's result: a text, or a list when it has images or documents.
func (in *input) result(b *sessionv1.Block, r *sessionv1.ToolResult) {
	var pieces []*commonv1.Content
	if why := prompt.Explain(r.GetOutcome()); why != "" {
		pieces = append(pieces, text(why))
	} else if prompt.IsError(r.GetOutcome()) {
		pieces = append(pieces, text("The tool reports an error:"))
	}
	plain := true
	for _, piece := range r.GetContent() {
		if t := piece.GetText(); piece.GetKind() == nil || t != nil && prompt.Blank(t.GetText()) {
			continue
		}
		plain = plain && shown(piece) == nil
		pieces = append(pieces, piece)
	}
	if len(pieces) == 0 {
		pieces = append(pieces, text("(no output)"))
	}
	in.item(`{"type":"function_call_output"`, b)
	in.field("call_id", in.conversation.ID(r.GetCallId()))
	if plain {
		texts := make([]string, len(pieces))
		for i, piece := range pieces {
			texts[i] = words(piece)
		}
		in.field("output", strings.Join(texts, "\n"))
		in.buf = append(in.buf, '}')
		return
	}
	in.buf = append(in.buf, `,"output":[`...)
	for _, piece := range pieces {
		in.content(piece)
	}
	in.buf = append(in.buf, "]}"...)
}

// content writes a part of a message or a result. Of documents the API takes PDFs.
func (in *input) content(c *commonv1.Content) {
	m := shown(c)
	if m == nil {
		in.buf = append(prompt.Next(in.buf), `{"type":"input_text"`...)
		in.field("text", words(c))
		in.buf = append(in.buf, '}')
		return
	}
	name := `{"type":"input_image","image_url":`
	if c.GetDocument() != nil {
		name = `{"type":"input_file"`
	}
	in.buf = append(prompt.Next(in.buf), name...)
	if c.GetDocument() != nil {
		in.field("filename", filename(m.GetTitle()))
		in.buf = append(in.buf, `,"file_data":`...)
	}
	in.buf = prompt.AppendDataURL(in.buf, media.Canonical(m.GetMediaType()), m.GetData())
	in.buf = append(in.buf, '}')
}

// shown returns the image or the PDF of a part; nil if it is sent as text.
func shown(c *commonv1.Content) *commonv1.Media {
	if d := c.GetDocument(); d != nil && media.Canonical(d.GetMediaType()) == media.PDF {
		return d
	}
	return c.GetImage()
}

// words returns a part as text.
func words(c *commonv1.Content) string {
	if d := c.GetDocument(); d != nil {
		return prompt.DocumentText(d)
	}
	return c.GetText().GetText()
}

// filename returns the name of a PDF: the API tells the kind of a file by its ending.
func filename(title string) string {
	if title == "" {
		title = "document"
	}
	if strings.EqualFold(path.Ext(title), ".pdf") {
		return title
	}
	return title + ".pdf"
}

func text(s string) *commonv1.Content {
	return &commonv1.Content{Kind: &commonv1.Content_Text{Text: &commonv1.Text{Text: s}}}
}
