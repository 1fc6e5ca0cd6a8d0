package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Fault is a rule that a spec breaks.
type Fault struct {
	Field string // as AgentSpec has it
	Text  string
}

// Faults returns the rules that the spec breaks by itself. Whether its model, tools and
// profile exist is not among them.
func (s Spec) Faults() []Fault {
	var faults []Fault
	add := func(field, text string) { faults = append(faults, Fault{field, text}) }
	check := func(field string, err error) {
		if err != nil {
			add(field, err.Error())
		}
	}
	if s.Profile == "" {
		add("profile", "profile is missing; the built-in profiles are full, read-only and ask-writes")
	}
	check(s.checkVerdict())
	check(s.checkSubagents())
	check("parameters", s.checkParameters())
	check("environment", s.checkEnvironment())
	check("skills", checkSkills(s.Skills))
	check(s.checkRuntime())
	check("checkpoints", CheckCheckpoints(s.Checkpoints))
	check("network", s.checkNetwork())
	check("limits", s.Limits.check())
	check("mounts", checkMounts(s.Mounts))
	check("repositories", s.checkRepositories())
	check("mcp_servers", s.MCPServers.Check())
	check("permissions", s.Permissions.check())
	check("metadata_json", checkMetadata(s.MetadataJSON))
	for _, limit := range []struct {
		field    string
		negative bool
	}{
		{"max_steps", s.MaxSteps < 0}, {"max_wall_time", s.MaxWallTime < 0}, {"max_output_tokens", s.MaxOutputTokens < 0},
	} {
		if limit.negative {
			add(limit.field, "a limit is negative")
		}
	}
	return faults
}

// checkMetadata refuses metadata that is no JSON: its readers could not read it.
func checkMetadata(text string) error {
	if text != "" && !json.Valid([]byte(text)) {
		return errors.New("the metadata is not valid JSON; send one JSON value as text")
	}
	return nil
}

// CheckCheckpoints refuses a misleading list of tools.
func CheckCheckpoints(tools []string) error {
	for _, t := range tools {
		if begin, _ := strings.CutSuffix(t, "*"); t == "" || strings.ContainsAny(begin, "* ()") {
			return fmt.Errorf("checkpoints: %q is not a tool's name, a prefix followed by *, or *", t)
		}
	}
	return nil
}
