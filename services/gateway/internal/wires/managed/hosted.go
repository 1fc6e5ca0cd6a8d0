package managed

import (
	"encoding/json"
	"fmt"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// queueLabel is the label of sessions whose tools a worker runs; its value is the environment's id. The session service
// finds a queue's sessions by it.
const queueLabel = "fairlead/work-queue"

// hostedTool describes a tool of the toolset that a worker runs.
type hostedTool struct{ description, schema string }

// hostedTools are the tools that the toolsets of workers have, with the inputs that these expect.
var hostedTools = map[string]hostedTool{
	"bash": {
		"Runs a shell command and returns what it prints. The shell keeps its directory and variables between calls; restart begins a new one.",
		`{"type":"object","properties":{"command":{"type":"string","description":"The command."},"restart":{"type":"boolean","description":"Begins a new shell instead of running a command."},"timeout_ms":{"type":"integer","description":"The most milliseconds that the command may take."}}}`,
	},
	"read": {
		"Reads a file.",
		`{"type":"object","properties":{"file_path":{"type":"string","description":"The path of the file."},"view_range":{"type":"array","items":{"type":"integer"},"description":"The first and the last line, from 1; a last line of 0 is the end of the file."}},"required":["file_path"]}`,
	},
	"write": {
		"Writes a file. An existing file is replaced.",
		`{"type":"object","properties":{"file_path":{"type":"string","description":"The path of the file."},"content":{"type":"string","description":"The whole content."}},"required":["file_path","content"]}`,
	},
	"edit": {
		"Replaces a text in a file. The text must occur once, unless replace_all is set.",
		`{"type":"object","properties":{"file_path":{"type":"string","description":"The path of the file."},"old_string":{"type":"string","description":"The text to replace."},"new_string":{"type":"string","description":"The new text."},"replace_all":{"type":"boolean","description":"Replaces every occurrence."}},"required":["file_path","old_string","new_string"]}`,
	},
	"glob": {
		"Finds files by a pattern, such as **/*.go.",
		`{"type":"object","properties":{"pattern":{"type":"string","description":"The pattern."},"path":{"type":"string","description":"The directory to search."}},"required":["pattern"]}`,
	},
	"grep": {
		"Searches the contents of files for a regular expression.",
		`{"type":"object","properties":{"pattern":{"type":"string","description":"The regular expression."},"path":{"type":"string","description":"The directory to search."}},"required":["pattern"]}`,
	},
}

// host makes a session one whose tools a worker runs: ours are hidden, and the toolset's are tools of the client.
func (d *sessionDoc) host(want *sessionv1.Session) error {
	d.Hosted = true
	for i, t := range d.Tools {
		for _, c := range t.Configs {
			if t.Type == toolset && *c.Enabled && c.Policy.Type != "always_allow" {
				return resource.Bad("environment_id", fmt.Sprintf("it is self_hosted, and tools[%d] of the agent has the policy %s for %s: calls that a worker runs cannot wait for a person; use always_allow", i, c.Policy.Type, c.Name))
			}
		}
	}
	if len(d.Resources) > 0 {
		return resource.Bad("resources", "the environment is self_hosted: its worker brings the files")
	}
	want.Labels = map[string]string{queueLabel: wire.LastPart(want.GetEnvironment())}
	want.Permissions = &commonv1.PermissionRules{}
	for _, name := range toolsetNames {
		if ourTools[name] != "" {
			want.Permissions.Deny = append(want.Permissions.Deny, ourTools[name])
		}
	}
	return nil
}

// clientTools returns the tools that the client or a worker runs.
func (d *sessionDoc) clientTools() []*sessionv1.ClientTool {
	out, _ := clientTools(d.Tools)
	for _, name := range d.hosted() {
		out = append(out, &sessionv1.ClientTool{Name: name, Description: hostedTools[name].description, InputSchemaJson: hostedTools[name].schema})
	}
	return out
}

// hosted returns the names of the tools that a worker runs.
func (d *sessionDoc) hosted() (names []string) {
	if !d.Hosted {
		return nil
	}
	for _, t := range d.Tools {
		for _, c := range t.Configs {
			if t.Type == toolset && c.Enabled != nil && *c.Enabled { // any user can write metadata
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// encoder returns an Encoder of a session.
func (d *sessionDoc) encoder() *Encoder {
	_, custom := clientTools(d.Tools)
	return NewEncoder(custom, d.hosted()...)
}

// isHosted reports whether the sessions of an environment run their tools at a worker.
func isHosted(e *sessionv1.Environment) bool {
	d := keptIn(e.GetSpec().GetMetadataJson()).Environment
	return d != nil && configType(d.Config) == selfHosted
}

const selfHosted = "self_hosted"

func configType(config json.RawMessage) string {
	var c cloud
	if json.Unmarshal(config, &c) != nil || c.Type == "" {
		return "cloud"
	}
	return c.Type
}
