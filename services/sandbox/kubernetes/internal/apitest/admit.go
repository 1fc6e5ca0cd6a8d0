package apitest

import (
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

var (
	dnsLabel   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
)

// admit returns why a pod is refused: by the rules of Pod Security, which are Kubernetes' own code, or
// because it is invalid. mu is held.
func (s *Server) admit(p *corev1.Pod) *metav1.Status {
	if s.pods[p.Name] != nil {
		return &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Message: p.Name + " already exists"}
	}
	rules, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		s.t.Error(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if r := policy.AggregateCheckResults(rules.EvaluatePod(level, &p.ObjectMeta, &p.Spec)); !r.Allowed {
		return &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "violates PodSecurity \"restricted:latest\": " + r.ForbiddenDetail()}
	}
	if faults := s.invalid(p); len(faults) > 0 {
		return &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "Pod is invalid: " + strings.Join(faults, "; ")}
	}
	return nil
}

func (s *Server) claims(name string) bool {
	_, known := s.kubelet.volumes[name]
	return known
}

// invalid returns faults of a pod that the driver could cause.
func (s *Server) invalid(p *corev1.Pod) (faults []string) {
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	bad(!dnsLabel.MatchString(p.Name), "metadata.name: %q", p.Name)
	bad(p.Namespace != Namespace, "metadata.namespace: %q", p.Namespace)
	for k, v := range p.Labels {
		bad(!labelValue.MatchString(v), "metadata.labels: %s=%q", k, v)
	}
	for _, o := range p.OwnerReferences {
		bad(o.UID == "" || o.Name == "" || o.Kind == "" || o.APIVersion == "", "metadata.ownerReferences: %+v", o)
	}
	bad(len(p.Spec.Containers) != 1, "spec.containers: %d", len(p.Spec.Containers))
	bad(p.Spec.ActiveDeadlineSeconds == nil || *p.Spec.ActiveDeadlineSeconds < 1, "spec.activeDeadlineSeconds")
	bad(p.Spec.DNSPolicy == corev1.DNSNone && (p.Spec.DNSConfig == nil || len(p.Spec.DNSConfig.Nameservers) == 0), "spec.dnsConfig.nameservers: required with None")
	volumes := map[string]corev1.Volume{}
	for _, v := range p.Spec.Volumes {
		volumes[v.Name] = v
		bad(!dnsLabel.MatchString(v.Name), "spec.volumes: %q", v.Name)
		bad(v.PersistentVolumeClaim != nil && !s.claims(v.PersistentVolumeClaim.ClaimName), "spec.volumes: no claim %v", v.PersistentVolumeClaim)
	}
	for _, c := range p.Spec.Containers {
		bad(c.Image == "" || !dnsLabel.MatchString(c.Name), "spec.containers: %q %q", c.Name, c.Image)
		for name, most := range c.Resources.Limits {
			asked := c.Resources.Requests[name]
			bad(asked.Cmp(most) > 0 || most.Sign() <= 0, "spec.containers.resources.%s: %s of %s", name, &asked, &most)
		}
		at := map[string]bool{}
		for _, m := range c.VolumeMounts {
			_, known := volumes[m.Name]
			bad(!known || at[m.MountPath] || strings.Contains(m.MountPath, ":"), "spec.containers.volumeMounts: %s at %s", m.Name, m.MountPath)
			bad(path.IsAbs(m.SubPath) || strings.Contains("/"+m.SubPath+"/", "/../"), "spec.containers.volumeMounts.subPath: %s", m.SubPath)
			at[m.MountPath] = true
		}
	}
	return faults
}
