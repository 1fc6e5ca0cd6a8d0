package a2a

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// depthExtension names what says through how many agents a message has come.
const depthExtension = "https://fairlead.dev/a2a/depth"

// card answers with the agent's card. Who may read the agent may read its card.
func (c *call) card() error {
	ctx, cancel := c.within()
	defer cancel()
	got, err := c.agents.GetAgent(ctx, &sessionv1.GetAgentRequest{Name: "agents/" + c.agent})
	if err != nil {
		return err
	}
	b, err := json.Marshal(cardOf(got.GetAgent(), wire.Base(c.PublicURL, c.r)+prefix+c.agent, c.Config))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h := c.w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, max-age=60")
	if c.r.Header.Get("If-None-Match") == tag {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", jsonType)
	_, _ = c.w.Write(b) // the client may have gone; of HEAD the server drops the body
	return nil
}

// cardOf returns the card of an agent that is reached at a URL. Over gRPC, the tenant of a request is the agent.
func cardOf(a *sessionv1.Agent, at string, c Config) object {
	id := strings.TrimPrefix(a.GetName(), "agents/")
	about := a.GetDescription()
	if about == "" {
		about = "The agent " + id + "."
	}
	skills := []object{{"id": id, "name": id, "description": about, "tags": []string{id}}}
	for _, s := range a.GetSkills() {
		skills = append(skills, object{"id": "skill-" + s, "name": s, "description": "Uses the skill " + s + ".", "tags": []string{"skill"}})
	}
	outputs := []string{"text/plain"}
	if a.GetOutputSchemaJson() != "" {
		outputs = append(outputs, "application/json")
	}
	release := a.GetRevision()
	if a.GetVersion() > 0 {
		release = strconv.Itoa(int(a.GetVersion()))
	}
	interfaces := []object{
		{"url": at, "protocolBinding": "JSONRPC", "protocolVersion": version}, {"url": at, "protocolBinding": "HTTP+JSON", "protocolVersion": version},
	}
	if c.PublicGRPC != "" {
		interfaces = append(interfaces, object{"url": c.PublicGRPC, "protocolBinding": "GRPC", "protocolVersion": version, "tenant": id})
	}
	return object{
		"name": id, "description": about, "version": release, "supportedInterfaces": interfaces,
		"capabilities": object{"streaming": true, "pushNotifications": false, "extendedAgentCard": false, "extensions": []object{{
			"uri": depthExtension, "description": "A number in the metadata of a message: through how many agents it has come.", "params": object{"max": c.MaxDepth},
		}}},
		"securitySchemes":      object{"bearer": object{"httpAuthSecurityScheme": object{"scheme": "Bearer"}}},
		"securityRequirements": []object{{"schemes": object{"bearer": object{"list": []string{}}}}},
		"defaultInputModes":    []string{"text/plain", "application/json", "image/png", "image/jpeg", "application/pdf"}, "defaultOutputModes": outputs,
		"skills": skills,
	}
}

// extendedCard refuses: the card itself says all that a caller may know.
func (c *call) extendedCard() (any, error) {
	return nil, fail(unsupported, "there is no extended card: "+prefix+c.agent+"/"+cardPath+" has all that you may see")
}
