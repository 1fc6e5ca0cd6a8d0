package claudecode

import (
	"github.com/fairlead/fairlead/services/session/internal/claudecode/launch"
	"github.com/fairlead/fairlead/services/session/internal/turn/state"
)

// command returns what the relay runs, and the message that the CLI gets first; none if it is to go on with
// the conversation by itself.
func (r *Runtime) command(sc state.Scope, v *view) (launch.Start, []block, error) {
	last := v.last()
	if last == nil {
		return launch.Start{}, nil, errOther
	}
	before, env := v.groups[:len(v.groups)-1], environment()
	results, others := last.split()
	var say []block
	if len(results) == 0 {
		for _, at := range others {
			if b, ok := person(at.m, at.i); ok {
				say = append(say, b)
			}
		}
	} else { // a person's message would end the turn whose results these are
		before = v.groups
		env = append(env, "CLAUDE_CODE_RESUME_INTERRUPTED_TURN=1")
	}
	session := uuidOf(sc.Lease.Session)
	file, err := transcript(v, before, session)
	if err != nil {
		return launch.Start{}, nil, err
	}
	args := []string{
		"--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--tools", "", "--strict-mcp-config", "--setting-sources=",
		"--disable-slash-commands", "--permission-mode", "default", "--permission-prompt-tool", "stdio", "--allowedTools", "mcp__" + serverName,
		"--model", v.request.Model,
	}
	switch prompt := promptSign; {
	case sc.Spec.ClaudeCode.PresetPrompt && v.request.System == "":
	case sc.Spec.ClaudeCode.PresetPrompt:
		args = append(args, "--append-system-prompt", prompt)
	case v.request.System == "":
		args = append(args, "--system-prompt", "")
	default:
		args = append(args, "--system-prompt", prompt)
	}
	if len(file) > 0 {
		args = append(args, "--resume="+session)
	} else {
		args = append(args, "--session-id="+session)
	}
	return launch.Start{Program: r.config.Program, Args: args, Env: env, Session: session, Transcript: file, Version: !r.pool.known()}, say, nil
}

// environment returns the CLI's variables: nothing of it leaves the sandbox but the requests to the model.
func environment() []string {
	return []string{
		"HOME=" + launch.Dir + "/home", "TMPDIR=" + launch.Dir + "/tmp", "CLAUDE_CONFIG_DIR=" + launch.Dir + "/config",
		"ANTHROPIC_BASE_URL=http://model", "ANTHROPIC_UNIX_SOCKET=" + launch.Dir + "/" + launch.Socket, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS=1", "CLAUDE_CODE_ATTRIBUTION_HEADER=0", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1", "ENABLE_TOOL_SEARCH=false",
		// The session compacts, retries and sets the times.
		"DISABLE_AUTO_COMPACT=1", "DISABLE_COMPACT=1", "CLAUDE_CODE_MAX_RETRIES=1", "API_TIMEOUT_MS=2000000000", "MCP_TOOL_TIMEOUT=2000000000",
	}
}
