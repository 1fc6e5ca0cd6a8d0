package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The used part of the API of agent-sandbox (sigs.k8s.io/agent-sandbox), whose controller makes a pod of
// each Sandbox. Its own Go types would add the controller's dependencies.
var agentSandboxes = objects{"/apis/agents.x-k8s.io/v1beta1", "sandboxes"}

// AgentSandbox is a Sandbox.
type AgentSandbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              AgentSandboxSpec `json:"spec"`
}

// AgentSandboxSpec describes the pod and its lifetime.
type AgentSandboxSpec struct {
	PodTemplate    AgentSandboxPod `json:"podTemplate"`
	Service        *bool           `json:"service,omitempty"`
	ShutdownTime   *metav1.Time    `json:"shutdownTime,omitempty"`
	ShutdownPolicy string          `json:"shutdownPolicy,omitempty"`
	OperatingMode  string          `json:"operatingMode,omitempty"`
}

// AgentSandboxPod is the pod's template.
type AgentSandboxPod struct {
	Metadata AgentSandboxPodMetadata `json:"metadata"`
	Spec     corev1.PodSpec          `json:"spec"`
}

// AgentSandboxPodMetadata is the template's metadata.
type AgentSandboxPodMetadata struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// agentSandbox returns a Sandbox. It has no name in the cluster's network and expires by itself.
func (m *maker) agentSandbox(name string, spec corev1.PodSpec) *AgentSandbox {
	until := metav1.NewTime(time.Now().Add(m.o.Deadline))
	return &AgentSandbox{
		TypeMeta:   metav1.TypeMeta{Kind: "Sandbox", APIVersion: "agents.x-k8s.io/v1beta1"},
		ObjectMeta: m.meta(name),
		Spec: AgentSandboxSpec{
			PodTemplate: AgentSandboxPod{Metadata: AgentSandboxPodMetadata{Labels: m.labels(name)}, Spec: spec},
			Service:     ptr(false), ShutdownTime: &until, ShutdownPolicy: "Delete", OperatingMode: "Running",
		},
	}
}
