package agent

import (
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/config"
	"github.com/fairlead/fairlead/services/session/internal/mcp"
)

// FromProto returns the spec that a client sent.
func FromProto(p *sessionv1.AgentSpec) Spec {
	s := Spec{
		Description: p.GetDescription(), Model: p.GetModel(), Environment: p.GetEnvironment(), Models: p.GetModels(), Parameters: p.GetParameters(), Prompt: p.GetPrompt(), Tools: p.GetTools(), Profile: p.GetProfile(),
		Greeting: p.GetGreeting(), Verdict: p.GetVerdict(), OutputSchema: config.JSON(p.GetOutputSchemaJson()), PreCompaction: p.GetPreCompaction(),
		Limits: limitsFrom(p.GetLimits()), Mounts: mountsFrom(p.GetMounts()),
		TurnLimits: TurnLimits{MaxSteps: int(p.GetMaxSteps()), MaxWallTime: p.GetMaxWallTime().AsDuration(), MaxOutputTokens: p.GetMaxOutputTokens()},
	}
	if c := p.GetCheckpoints(); c != nil {
		s.Checkpoints = append([]string{}, c.GetTools()...)
	}
	for _, r := range p.GetNetwork() {
		s.Network = append(s.Network, NetworkRule{
			Name: r.GetName(), Host: r.GetHost(), Ports: r.GetPorts(), Methods: r.GetMethods(), Paths: r.GetPaths(), TLS: r.GetTls(), Credential: r.GetCredential(),
		})
	}
	for _, r := range p.GetRepositories() {
		s.Repositories = append(s.Repositories, Repository{
			URL: r.GetUrl(), Ref: r.GetRef(), Directory: r.GetDirectory(), Depth: r.GetDepth(), Branch: r.GetBranch(), Push: r.GetPush(),
		})
	}
	s.MCPServers, s.Subagents = mcp.From(p.GetMcpServers()), subagentsFrom(p.GetSubagents())
	s.Skills = p.GetSkills()
	s.Runtime, s.ClaudeCode = p.GetRuntime(), ClaudeCode{PresetPrompt: p.GetClaudeCode().GetPresetPrompt()}
	s.Permissions, s.MetadataJSON = permissionsFrom(p.GetPermissions()), p.GetMetadataJson()
	return s
}

// ToProto returns the spec as FromProto takes it: what is not set stays so.
func (s Spec) ToProto() *sessionv1.AgentSpec {
	p := &sessionv1.AgentSpec{
		Description: s.Description, Model: s.Model, Environment: s.Environment, Models: s.Models, Parameters: s.Parameters, Prompt: s.Prompt, Tools: s.Tools, Profile: s.Profile,
		Greeting: s.Greeting, Verdict: s.Verdict, OutputSchemaJson: string(s.OutputSchema), PreCompaction: s.PreCompaction,
		Limits: s.limitsProto(), Mounts: mountsProto(s.Mounts), Subagents: s.subagentsProto(),
		MaxSteps: int32(s.MaxSteps), MaxWallTime: optionalDuration(s.MaxWallTime), MaxOutputTokens: s.MaxOutputTokens,
	}
	if s.Checkpoints != nil {
		p.Checkpoints = &sessionv1.AgentCheckpoints{Tools: s.Checkpoints}
	}
	for _, r := range s.Network {
		p.Network = append(p.Network, &sessionv1.AgentNetworkRule{
			Name: r.Name, Host: r.Host, Ports: r.Ports, Methods: r.Methods, Paths: r.Paths, Tls: r.TLS, Credential: r.Credential,
		})
	}
	for _, r := range s.Repositories {
		p.Repositories = append(p.Repositories, &sessionv1.AgentRepository{
			Url: r.URL, Ref: r.Ref, Directory: r.Directory, Depth: r.Depth, Branch: r.Branch, Push: r.Push,
		})
	}
	p.McpServers, p.Skills, p.Permissions = s.MCPServers.Protos(), s.Skills, s.Permissions.Proto()
	p.Runtime, p.ClaudeCode = s.Runtime, s.ClaudeCode.proto()
	p.MetadataJson = s.MetadataJSON
	return p
}

func limitsFrom(p *sessionv1.AgentLimits) Limits {
	return Limits{
		Memory: p.GetMemoryBytes(), Processes: p.GetProcesses(), CPUs: float64(p.GetCpuMillis()) / 1000, FileSize: p.GetFileBytes(),
		OpenFiles: p.GetOpenFiles(), Output: p.GetOutputBytes(), Flood: p.GetFloodBytes(), WorkspaceBytes: p.GetWorkspaceBytes(),
		WorkspaceInodes: p.GetWorkspaceInodes(), Timeout: p.GetTimeout().AsDuration(), MaxTimeout: p.GetMaxTimeout().AsDuration(),
	}
}
