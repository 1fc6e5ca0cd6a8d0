package submit

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/agent"
	"github.com/fairlead/fairlead/services/session/internal/modelview"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// checkFits refuses a turn whose prompt and tools alone are longer than the
// model's context: no compaction could make room for its message.
func (s *Submitter) checkFits(
	ctx context.Context, k store.Key, session *sessionv1.Session, spec agent.Spec, r *sessionv1.CreateTurnRequest,
) error {
	most := s.Directory.ContextTokens(ctx, cmp.Or(r.Options.GetModel(), spec.Model))
	if most == 0 {
		return nil
	}
	fixed := modelview.TextTokens(spec.PromptFor(r.Options)) + s.toolTokens(ctx, k.Tenant+"\x00"+session.Agent+"\x00"+session.AgentRevision, spec.Tools)
	for _, t := range r.ClientTools {
		fixed += sizeOfTool(t.Name, t.Description, t.InputSchemaJson)
	}
	if fixed <= modelview.MostFixed(most) {
		return nil
	}
	return refusal.ContextFull(fixed, most)
}

// sizeOfTool estimates a tool's part of a model's context, in tokens.
func sizeOfTool(name, description, schema string) int64 {
	return modelview.TextTokens(name) + modelview.TextTokens(description) + modelview.TextTokens(schema)
}

const (
	// toolSizesFor is how long the size of an agent's tools is cached.
	toolSizesFor = time.Minute
	// toolPatience bounds the wait for the size: a turn is accepted without it,
	// too.
	toolPatience = 2 * time.Second
	maxToolSizes = 1000
)

// toolSizes caches the sizes of agents' tools.
type toolSizes struct {
	mu    sync.Mutex
	known map[string]toolSize
}

type toolSize struct {
	tokens int64
	at     time.Time
}

// toolTokens estimates the part of a model's context that an agent's tools take, in
// tokens; 0 if tools does not answer now. of names the agent's revision and the
// tenant.
func (s *Submitter) toolTokens(ctx context.Context, of string, names []string) int64 {
	if len(names) == 0 {
		return 0
	}
	c := &s.toolSizes
	c.mu.Lock()
	known, ok := c.known[of]
	c.mu.Unlock()
	if ok && time.Since(known.at) < toolSizesFor {
		return known.tokens
	}
	tokens, err := s.askToolTokens(ctx, names)
	if err != nil {
		s.Log.WarnContext(ctx, "cannot ask how large the agent's tools are; the turn is accepted without this check", "error", err)
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxToolSizes {
		c.known = map[string]toolSize{}
	}
	c.known[of] = toolSize{tokens, time.Now()}
	return tokens
}

func (s *Submitter) askToolTokens(ctx context.Context, names []string) (tokens int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolPatience)
	defer cancel()
	tools, err := s.Tools.ListTools(ctx)
	for _, t := range tools {
		if name := strings.TrimPrefix(t.Name, "tools/"); slices.Contains(names, name) {
			tokens += sizeOfTool(name, t.Description, t.InputSchemaJson)
		}
	}
	return tokens, err
}
