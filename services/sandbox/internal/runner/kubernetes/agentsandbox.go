package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is used of the API of agent-sandbox (sigs.k8s.io/agent-sandbox), whose
// controller makes a pod of each Sandbox. Its own types would bring the controller's
// dependencies along.
var agentSandboxes = objects{"/apis/agents.x-k8s.io/v1beta1", "sandboxes"}

// AgentSandbox is a Sandbox.
type AgentSandbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              AgentSandboxSpec `json:"spec"`
}

// AgentSandboxSpec says what pod there is to be, and until when.
type AgentSandboxSpec struct {
	PodTemplate    AgentSandboxPod `json:"podTemplate"`
	Service        *bool           `json:"service,omitempty"`
	ShutdownTime   *metav1.Time    `json:"shutdownTime,omitempty"`
	ShutdownPolicy string          `json:"shutdownPolicy,omitempty"`
	OperatingMode  string          `json:"operatingMode,omitempty"`
}

// AgentSandboxPod is the pod.
type AgentSandboxPod struct {
	Metadata AgentSandboxPodMetadata `json:"metadata"`
	Spec     corev1.PodSpec          `json:"spec"`
}

// AgentSandboxPodMetadata is all that a template says of it.
type AgentSandboxPodMetadata struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// agentSandbox is a sandbox as one of these. It has no name in the cluster's network, and
// goes away by itself when its time is over.
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
