package agent

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

var (
	parameterForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)
	placeholder   = regexp.MustCompile(`\{\{ ?([A-Za-z_][A-Za-z0-9_-]{0,62}) ?\}\}`)
)

// checkParameters refuses a parameter that neither the prompt nor the greeting uses. Other text in double braces is not a
// parameter, because a prompt may speak of templates.
func (s Spec) checkParameters() error {
	used := map[string]bool{}
	for _, m := range placeholder.FindAllStringSubmatch(s.Prompt+s.Greeting, -1) {
		used[m[1]] = true
	}
	for i, name := range s.Parameters {
		switch {
		case !parameterForm.MatchString(name):
			return fmt.Errorf("parameters: %q is not a name of letters, digits, - and _", name)
		case slices.Contains(s.Parameters[:i], name):
			return fmt.Errorf("parameters: %q is named twice", name)
		case !used[name]:
			return fmt.Errorf("parameters: neither the prompt nor the greeting has {{%s}}", name)
		}
	}
	return nil
}

// Every in an agent's models stands for every usable model, and in its skills for every skill that the user has.
const Every = "*"

// AllowsModel reports whether a turn may choose the model.
func AllowsModel(s Spec, name, defaultModel string) bool {
	return name == cmp.Or(s.Model, defaultModel) || slices.Contains(s.Models, name) || slices.Contains(s.Models, Every)
}

// Options returns the options of a turn: the request's, then the session's. An option that is set nowhere
// stays unset. The result is nil if none is set.
func Options(request, session *sessionv1.TurnOptions) *sessionv1.TurnOptions {
	if request == nil && session == nil {
		return nil
	}
	out := &sessionv1.TurnOptions{
		Model: cmp.Or(request.GetModel(), session.GetModel()), Context: cmp.Or(request.GetContext(), session.GetContext()),
		ThinkingTokens: cmp.Or(thinking(request), thinking(session)), Parameters: map[string]string{},
		PermissionMode: cmp.Or(request.GetPermissionMode(), session.GetPermissionMode()),
	}
	maps.Copy(out.Parameters, session.GetParameters())
	maps.Copy(out.Parameters, request.GetParameters())
	return out
}

func thinking(o *sessionv1.TurnOptions) *int64 {
	if o == nil {
		return nil
	}
	return o.ThinkingTokens
}

// CheckOptions returns what the agent does not allow of a turn's options. whole says that nothing is missing
// any more: the options are those of a turn, and not of a session.
func (s Spec) CheckOptions(o *sessionv1.TurnOptions, defaultModel string, whole bool) *Fault {
	if m := o.GetModel(); m != "" && !AllowsModel(s, m, defaultModel) {
		return &Fault{"model", fmt.Sprintf("The agent does not allow the model %q; it allows %s. Add the model to the agent's key models; %q there allows every usable model.",
			m, strings.Join(append([]string{cmp.Or(s.Model, defaultModel)}, s.Models...), ", "), Every)}
	}
	for _, name := range slices.Sorted(maps.Keys(o.GetParameters())) {
		if !slices.Contains(s.Parameters, name) {
			return &Fault{"parameters", fmt.Sprintf("The agent has no parameter %q; it has %s.", name, cmp.Or(strings.Join(s.Parameters, ", "), "none"))}
		}
	}
	for _, name := range s.Parameters {
		if _, ok := o.GetParameters()[name]; whole && !ok {
			return &Fault{"parameters", fmt.Sprintf("The agent's parameter %q has no value.", name)}
		}
	}
	return nil
}

// PromptFor returns the prompt with the session's skills and a turn's parameters and context. A value is taken as it is: braces in it
// mean nothing.
func (s Spec) PromptFor(o *sessionv1.TurnOptions) string {
	prompt := fill(s.Prompt, s.Parameters, o)
	if skills := s.SkillPrompt(); skills != "" {
		prompt += "\n\n" + skills
	}
	return strings.TrimSpace(prompt + "\n\n" + o.GetContext())
}

// GreetingFor returns the greeting with the parameters that a new session has. A parameter without a value stays as it
// is written.
func GreetingFor(s Spec, o *sessionv1.TurnOptions) string { return fill(s.Greeting, s.Parameters, o) }

// fill puts the values of parameters into a text.
func fill(text string, parameters []string, o *sessionv1.TurnOptions) string {
	if len(parameters) == 0 {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := placeholder.FindStringSubmatch(found)[1]
		if value, ok := o.GetParameters()[name]; ok && slices.Contains(parameters, name) {
			return value
		}
		return found
	})
}
