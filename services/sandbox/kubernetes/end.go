package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// remove ends a sandbox's pod and waits until nothing of it is left. It remembers a pod that may still
// exist, so that the workspace gets no second one beside it.
func (b *body) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := b.m.end(ctx, b.name, b.look)
	if b.fate != "" {
		b.m.o.Log.WarnContext(ctx, "the pod of a sandbox ended by itself", "sandbox", b.name, "said", b.fate)
	}
	if err != nil {
		b.m.mu.Lock()
		b.m.leftovers[b.name] = b.workspace
		b.m.mu.Unlock()
	}
	return err
}

// look records the fate of a pod that may have ended by itself.
func (b *body) look(p *corev1.Pod) {
	starved := slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && c.State.Terminated.Reason == "OOMKilled"
	})
	if starved {
		b.starved.Store(true)
	}
	// A pod that is being deleted may fail because of that.
	if starved || p.Status.Phase == corev1.PodFailed && (p.DeletionTimestamp == nil || p.Status.Reason != "") {
		b.fate = state(p)
	}
}

// end deletes all objects of a sandbox and waits until they are gone. It calls tell with each observed
// state of the pod. It watches from before the deletion: the node reports how a pod ended before it
// releases it, and often not sooner.
func (m *maker) end(ctx context.Context, name string, tell func(*corev1.Pod)) error {
	try := func() error {
		return m.client.await(ctx, selector(name), func(all []corev1.Pod) (bool, error) {
			for i := range all {
				tell(&all[i])
			}
			return len(all) == 0, m.remove(ctx, name, all)
		})
	}
	err := try()
	for err != nil && sleep(ctx, retryPause) {
		err = try()
	}
	if err == nil && m.o.API == AgentSandboxes {
		err = try() // the pod may have been made before its maker was deleted
	}
	if err != nil {
		return fmt.Errorf("the pod of sandbox %s may still be there: %w", name, err)
	}
	return nil
}

// remove deletes the maker of a sandbox's pods, and the pods that are not being deleted.
func (m *maker) remove(ctx context.Context, name string, all []corev1.Pod) error {
	if m.o.API == AgentSandboxes {
		if err := m.client.remove(ctx, agentSandboxes, name); err != nil {
			return err
		}
	}
	for i := range all {
		if all[i].DeletionTimestamp != nil {
			continue
		}
		if err := m.client.remove(ctx, pods, all[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// endLeftover ends the remains of an earlier sandbox of a workspace.
func (m *maker) endLeftover(ctx context.Context, workspace string) error {
	m.mu.Lock()
	left := maps.Clone(m.leftovers)
	m.mu.Unlock()
	for name, of := range left {
		if of != workspace {
			continue
		}
		if err := m.end(ctx, name, ignorePod); err != nil {
			return fmt.Errorf("an earlier sandbox of the workspace has not ended: %w", err)
		}
		m.mu.Lock()
		delete(m.leftovers, name)
		m.mu.Unlock()
	}
	return nil
}

// ignorePod ignores the outcome of a pod.
func ignorePod(*corev1.Pod) {}

// Sweep removes the pods of an earlier service that kept its data on the same volume. The caller holds the
// data directory.
func (r *Runner) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	names, err := r.m.made(ctx)
	for _, name := range names {
		err = errors.Join(err, r.m.end(ctx, name, ignorePod))
	}
	if err != nil {
		return fmt.Errorf("remove the leftovers of an earlier service in %s: %w", r.m.o.Namespace, err)
	}
	if len(names) > 0 {
		r.m.o.Log.InfoContext(ctx, "removed sandboxes of an earlier service", "count", len(names))
	}
	return nil
}

// made lists the sandboxes of this service.
func (m *maker) made(ctx context.Context) ([]string, error) {
	all := map[string]bool{}
	from := []objects{pods}
	if m.o.API == AgentSandboxes {
		from = append(from, agentSandboxes)
	}
	for _, r := range from {
		var l struct {
			Items []struct {
				metav1.ObjectMeta `json:"metadata"`
			} `json:"items"`
		}
		if err := m.client.list(ctx, r, LabelService+"="+m.id, &l); err != nil {
			return nil, err
		}
		for _, x := range l.Items {
			if name := x.Labels[LabelSandbox]; name != "" {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}
