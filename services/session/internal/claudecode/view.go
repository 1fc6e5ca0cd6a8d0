package claudecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/model"
	"github.com/fairlead/fairlead/services/session/internal/model/prompt"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

var marshal = proto.MarshalOptions{Deterministic: true}

// promptSign stands for the agent's prompt in the CLI, whose arguments every process may read.
const promptSign = "[[fairlead prompt]]"

// continued is what the CLI adds when it goes on with a turn by itself, and silent what it puts between a
// turn that it does not go on with and the next message. Neither was said.
const (
	continued = "Continue from where you left off."
	silent    = "No response requested."
)

// view is the conversation as the model sees it, with what finds its blocks again in a request of the CLI.
type view struct {
	request  model.Request
	head     []*sessionv1.Message            // before the first message of a person
	groups   []group                         // the rest
	blocks   map[string]*sessionv1.Block     // by what stands for them in the CLI
	together map[string][][]*sessionv1.Block // the messages of the group with a result, by the CLI's id of its call
}

// group are neighbors with the same role.
type group []*sessionv1.Message

func (g group) role() sessionv1.Role { return g[0].GetRole() }

// split returns the results in the group's messages, and the places of its other blocks.
func (g group) split() (results []*sessionv1.ToolResult, others []place) {
	for _, m := range g {
		for i, b := range m.GetBlocks() {
			if r := b.GetToolResult(); r != nil {
				results = append(results, r)
			} else {
				others = append(others, place{m, i})
			}
		}
	}
	return results, others
}

// place is where a block is.
type place struct {
	m *sessionv1.Message
	i int
}

// newView orders the conversation of a request.
func newView(r model.Request) *view {
	v := &view{request: r, blocks: map[string]*sessionv1.Block{}, together: map[string][][]*sessionv1.Block{}}
	for _, m := range r.Messages {
		switch n := len(v.groups); {
		case n == 0 && m.GetRole() == sessionv1.Role_ROLE_ASSISTANT:
			v.head = append(v.head, m)
		case n > 0 && v.groups[n-1].role() == m.GetRole() && m.GetRole() != sessionv1.Role_ROLE_ASSISTANT:
			v.groups[n-1] = append(v.groups[n-1], m)
		default:
			v.groups = append(v.groups, group{m})
		}
		v.index(m)
	}
	for _, g := range v.groups {
		var all [][]*sessionv1.Block
		for _, m := range g {
			if len(m.GetBlocks()) > 0 {
				all = append(all, m.GetBlocks())
			}
		}
		results, _ := g.split()
		for _, r := range results {
			v.together[toolUseID(r.GetCallId())] = all
		}
	}
	return v
}

func (v *view) index(m *sessionv1.Message) {
	for i, b := range m.GetBlocks() {
		switch k := b.GetKind().(type) {
		case *sessionv1.Block_Thinking:
			v.blocks[thinkingID(state.LastSegment(m.GetTurn()), m.GetStep(), i)] = b
		case *sessionv1.Block_ToolUse:
			v.blocks["call "+toolUseID(k.ToolUse.GetCallId())] = b
		case *sessionv1.Block_ToolResult:
			v.blocks["result "+toolUseID(k.ToolResult.GetCallId())] = b
		default:
			v.blocks[sign(m, i)] = b
		}
	}
}

// last returns the messages that the model has not answered.
func (v *view) last() group {
	if n := len(v.groups); n > 0 && v.groups[n-1].role() != sessionv1.Role_ROLE_ASSISTANT {
		return v.groups[n-1]
	}
	return nil
}

// body is what this package reads of a request of the CLI.
type body struct {
	Model    string   `json:"model"`
	Stream   bool     `json:"stream"`
	System   anyBlock `json:"system"`
	Messages []struct {
		Role    string   `json:"role"`
		Content anyBlock `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func (b *body) read(raw []byte) error {
	if err := json.Unmarshal(raw, b); err != nil {
		return fmt.Errorf("read the CLI's request: %w", err)
	}
	return nil
}

// anyBlock is a text, or a list of blocks.
type anyBlock []block

// UnmarshalJSON reads either.
func (a *anyBlock) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*a = anyBlock{text(s)}
		return nil
	}
	return json.Unmarshal(b, (*[]block)(a))
}

// errOther says that the CLI asks about another conversation than the session's.
var errOther = errors.New("the CLI asks its model about another conversation than the session's")

// compose returns the request that the CLI makes: its prompt and its reminders, and the session's blocks
// wherever it has them.
func (v *view) compose(raw []byte) (model.Request, body, error) {
	var b body
	if err := b.read(raw); err != nil {
		return model.Request{}, b, err
	}
	if !b.Stream {
		return model.Request{}, b, errors.New("the CLI asks for an answer that is not streamed")
	}
	r := v.request
	room := maxRequest
	if r.System, room = v.system(b.System, room); room < 0 {
		return model.Request{}, b, errMuch
	}
	r.Messages = slices.Clone(v.head)
	seen := map[*sessionv1.Block]bool{}
	for i, m := range b.Messages {
		role := sessionv1.Role_ROLE_USER
		var all [][]*sessionv1.Block
		switch m.Role {
		case "assistant":
			role, all = sessionv1.Role_ROLE_ASSISTANT, [][]*sessionv1.Block{v.assistants(m.Content, seen)}
		case "system": // its reminders, for models that it does not know as older ones
			all = [][]*sessionv1.Block{reminders(m.Content)}
		default:
			all = v.users(m.Content, seen)
		}
		for _, blocks := range all {
			if len(blocks) > 0 {
				if room -= sizeOf(blocks); room < 0 {
					return model.Request{}, b, errMuch
				}
				d := digestOf(role, blocks)
				r.Messages = append(r.Messages, &sessionv1.Message{Name: fmt.Sprintf("%d-%x", i, d[:8]), Role: role, Blocks: blocks})
			}
		}
	}
	return r, b, v.check(r, seen)
}

// errMuch says that the CLI's request stands for too much. Only a command in its sandbox makes such a request.
var errMuch = fmt.Errorf("the CLI's request to its model is larger than %d MiB", maxRequest>>20)

func sizeOf(blocks []*sessionv1.Block) (n int) {
	for _, b := range blocks {
		n += proto.Size(b)
	}
	return n
}

// system returns the prompt, and what it leaves of the room; less than 0 if it is too large.
func (v *view) system(blocks []block, room int) (string, int) {
	var texts []string
	for _, b := range blocks {
		if room -= len(b.Text) + strings.Count(b.Text, promptSign)*len(v.request.System); room < 0 {
			return "", room
		}
		if b.Text != "" && !strings.HasPrefix(b.Text, "x-anthropic-billing-header:") {
			texts = append(texts, strings.ReplaceAll(b.Text, promptSign, v.request.System))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n")), room
}

// users returns the messages in a user's message of the CLI, which joins neighbors: first the session's with
// results, as they are, then what the CLI says itself.
func (v *view) users(content []block, seen map[*sessionv1.Block]bool) [][]*sessionv1.Block {
	var all [][]*sessionv1.Block
	var said, reminded []*sessionv1.Block
	for _, b := range content {
		words := strings.TrimSuffix(b.Text, "\n")
		switch {
		case b.Type == "tool_result":
			if own := v.blocks["result "+b.ToolUseID]; own != nil {
				seen[own] = true
			}
			if group := v.together[b.ToolUseID]; len(group) > 0 && !slices.ContainsFunc(all, func(m []*sessionv1.Block) bool { return m[0] == group[0][0] }) {
				all = append(all, group...)
			}
			for _, c := range b.Content {
				if strings.HasPrefix(c.Text, reminder) {
					reminded = append(reminded, original(c.Text))
				}
			}
		case b.Type != "text" || words == continued:
		case strings.HasPrefix(words, reminder):
			reminded = append(reminded, original(words))
		case v.blocks[words] != nil:
			seen[v.blocks[words]] = true
			said = append(said, v.blocks[words])
		default:
			said = append(said, original(words))
		}
	}
	for _, more := range [][]*sessionv1.Block{said, reminded} {
		if len(more) > 0 {
			all = append(all, more)
		}
	}
	return all
}

// reminder begins what the CLI says itself.
const reminder = "<system-reminder>"

// reminders returns what the CLI itself says.
func reminders(content []block) []*sessionv1.Block {
	var out []*sessionv1.Block
	for _, b := range content {
		if b.Text != "" {
			out = append(out, original(reminder+"\n"+b.Text+"\n</system-reminder>"))
		}
	}
	return out
}

// assistants returns the blocks of a message of the model.
func (v *view) assistants(content []block, seen map[*sessionv1.Block]bool) []*sessionv1.Block {
	var out []*sessionv1.Block
	for _, b := range content {
		var own *sessionv1.Block
		switch {
		case b.Type == "tool_use":
			own = v.blocks["call "+b.ID]
		case b.Type == "thinking":
			own = v.blocks[b.Signature]
		case b.Type == "text" && b.Text != silent:
			own = original(b.Text)
		}
		if own != nil {
			seen[own] = true
			out = append(out, own)
		}
	}
	return out
}

// check returns an error if the request lacks something that the model has to answer.
func (v *view) check(r model.Request, seen map[*sessionv1.Block]bool) error {
	last := v.last()
	if last == nil || len(r.Messages) == 0 {
		return errOther
	}
	results, others := last.split()
	for _, result := range results {
		if b := v.blocks["result "+toolUseID(result.GetCallId())]; !seen[b] {
			return errOther
		}
	}
	if len(results) > 0 {
		return nil // the others come with them
	}
	var said strings.Builder
	for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].GetRole() != sessionv1.Role_ROLE_ASSISTANT; i-- {
		for _, b := range r.Messages[i].GetBlocks() {
			said.WriteString(b.GetContent().GetText().GetText() + "\n")
		}
	}
	for _, at := range others {
		b := at.m.GetBlocks()[at.i]
		t := strings.TrimSuffix(b.GetContent().GetText().GetText(), "\n")
		if !seen[b] && !prompt.Blank(t) && !strings.Contains(said.String(), t) {
			return errOther
		}
	}
	return nil
}
