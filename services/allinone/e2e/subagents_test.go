package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/services/internal/kit/prove"
)

// family is the agents of the tests of subagents: the lead gives work to three, and each of these to two.
const family = `  lead:
    profile: full
    prompt: Lead.
    tools: [Bash, Task]
    subagents:
      - {name: middle, description: Gives work on., prompt: Give it on., tools: [Bash, Task]}
      - {name: leaf, description: Works., prompt: Work., tools: [Bash]}
`

const fewTokens = 9_000

// TestSubagentsEndWithTheirTurnWhileServersAreKilled kills two servers at random moments while a turn has nine subagents
// on two levels. A seed in three gives the turn few tokens.
func TestSubagentsEndWithTheirTurnWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	prove.Only(t, "it kills two servers over and over")
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			p := startTwins(t, seed, options{scenario: filepath.Join("testdata", "subagents.yaml"), agents: family})
			h := &household{clients: p.clients(), tokens: 1_000_000}
			if seed%3 == 2 {
				h.tokens = fewTokens
			}
			session := p.servers[0].session(t, "lead")
			turn := made(t, p.servers[0].call(t, http.MethodPost, "/v1/"+session+"/turns", fmt.Sprintf(`{"text":"lead","limits":{"maxTokens":"%d"}}`, h.tokens)))
			p.strike(t, 4)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			h.examine(ctx, t, session, turn)
			for _, s := range p.servers {
				if exists(s.file(session, "")) {
					h.count(t, s.runs(t, session))
				}
			}
			if h.counted != 1 {
				t.Errorf("%d servers have the workspace", h.counted)
			}
			t.Logf("killed %v; %d subagents, %d calls, %d of them with an unknown end", p.struck, h.members, len(h.calls), h.unknown)
		})
	}
}

// household is a turn and its subagents, as clients see them.
type household struct {
	clients
	tokens           int64
	members, unknown int
	calls            map[string]string // outcomes, by the line that the call's command appends
	counted          int
}

type usage struct{ InputTokens, OutputTokens string }

func (u usage) tokens() int64 {
	in, _ := strconv.ParseInt(u.InputTokens, 10, 64)
	out, _ := strconv.ParseInt(u.OutputTokens, 10, 64)
	return in + out
}

type memberTurn struct {
	Name, State          string
	EndTime              time.Time
	Usage, SubagentUsage usage
	Error                struct{ Reason string }
}

// examine waits for the end of the turn, and checks it and what is below it.
func (h *household) examine(ctx context.Context, t *testing.T, session, name string) {
	t.Helper()
	h.calls = map[string]string{}
	var turn memberTurn
	for turn.EndTime.IsZero() {
		if err := h.get(ctx, "/v1/"+name, &turn); err != nil {
			t.Fatalf("the turn has not ended: %v", err)
		}
		pause(ctx)
	}
	limited := h.tokens == fewTokens
	if turn.State != "TURN_STATE_COMPLETE" && (!limited || turn.State != "TURN_STATE_PARTIAL") {
		t.Errorf("the turn ended %s %s", turn.State, turn.Error.Reason)
	}
	if used := turn.Usage.tokens() + turn.SubagentUsage.tokens(); used > h.tokens {
		t.Errorf("the turn and its subagents used %d tokens of %d", used, h.tokens)
	}
	h.descend(ctx, t, session, turn)
	if !limited && (h.members != 9 || len(h.calls) != 16) {
		t.Errorf("%d subagents made %d calls", h.members, len(h.calls))
	}
}

// descend checks the subagents of a turn, each of which has one turn that ended before it.
func (h *household) descend(ctx context.Context, t *testing.T, session string, turn memberTurn) {
	t.Helper()
	h.log(ctx, t, session)
	var list struct {
		Sessions []struct {
			Name       string
			ParentCall struct{ CallID string }
		}
	}
	if err := h.get(ctx, "/v1/sessions?page_size=100&parent="+session, &list); err != nil {
		t.Fatal(err)
	}
	calls, used := map[string]bool{}, int64(0)
	for _, s := range list.Sessions {
		h.members++
		calls[s.ParentCall.CallID] = true
		var turns struct{ Turns []memberTurn }
		if err := h.get(ctx, "/v1/"+s.Name+"/turns", &turns); err != nil || len(turns.Turns) != 1 {
			t.Fatalf("the subagent %s has the turns %v, %v", s.Name, turns, err)
		}
		end := turns.Turns[0]
		if end.EndTime.IsZero() || end.EndTime.After(turn.EndTime) {
			t.Errorf("the subagent %s ended at %s, its parent at %s", s.Name, end.EndTime, turn.EndTime)
		}
		used += end.Usage.tokens() + end.SubagentUsage.tokens()
		h.descend(ctx, t, s.Name, end)
	}
	if len(calls) != len(list.Sessions) {
		t.Errorf("%d subagents work for %d calls of %s", len(list.Sessions), len(calls), session)
	}
	if got := turn.SubagentUsage.tokens(); got != used {
		t.Errorf("%s counts %d tokens of its subagents, which used %d", turn.Name, got, used)
	}
}

// log notes how the calls of a session ended.
func (h *household) log(ctx context.Context, t *testing.T, session string) {
	t.Helper()
	var list struct {
		Events []struct {
			ToolCallArguments struct{ CallID, Tool, ArgumentsJSON string }
			ToolCallFinished  struct{ CallID, Outcome string }
		}
	}
	if err := h.get(ctx, "/v1/"+session+"/events?page_size=1000", &list); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, e := range list.Events {
		if a := e.ToolCallArguments; a.Tool == "Bash" {
			lines[a.CallID] = strings.Split(a.ArgumentsJSON, "'")[1]
		}
		line, ok := lines[e.ToolCallFinished.CallID]
		if !ok {
			continue
		}
		if _, twice := h.calls[line]; twice {
			t.Errorf("the call for %q ended twice", line)
		}
		h.calls[line] = strings.TrimPrefix(e.ToolCallFinished.Outcome, "TOOL_OUTCOME_")
	}
}

// count compares the calls with what their commands have left.
func (h *household) count(t *testing.T, runs string) {
	t.Helper()
	h.counted++
	left := map[string]int{}
	for line := range strings.Lines(runs) {
		left[strings.TrimSpace(line)]++
	}
	for line, outcome := range h.calls {
		n := left[line]
		delete(left, line)
		switch {
		case outcome == "OK" && n == 1:
		case outcome == "UNKNOWN" && n <= 1:
			h.unknown++
		default:
			t.Errorf("the call for %q ended %s, and its command ran %d times", line, outcome, n)
		}
	}
	for line, n := range left {
		t.Errorf("%q was written %d times by no call", line, n)
	}
}
