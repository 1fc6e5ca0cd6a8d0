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

// remove ends a sandbox's pod and waits until nothing of it is left. One that cannot be
// shown to be gone is remembered, so that its workspace gets no second one beside it.
func (b *body) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := b.m.end(ctx, b.name)
	if err != nil {
		b.m.mu.Lock()
		b.m.left[b.name] = b.workspace
		b.m.mu.Unlock()
	}
	return err
}

// end deletes all that makes up a sandbox, and waits until it is gone.
func (m *maker) end(ctx context.Context, name string) error {
	try := func() error {
		if m.o.API == AgentSandboxes {
			if err := m.client.remove(ctx, agentSandboxes, name); err != nil {
				return err
			}
		}
		var l corev1.PodList
		if err := m.client.list(ctx, pods, selector(name), &l); err != nil {
			return err
		}
		for _, p := range l.Items {
			if err := m.client.remove(ctx, pods, p.Name); err != nil {
				return err
			}
		}
		return nil
	}
	err := try()
	for err != nil && sleep(ctx, retryPause) {
		err = try()
	}
	if err == nil {
		err = m.client.await(ctx, selector(name), func(all []corev1.Pod) (bool, error) { return len(all) == 0, nil })
	}
	if err != nil {
		return fmt.Errorf("the pod of sandbox %s may still be there: %w", name, err)
	}
	return nil
}

// endLeft ends what an earlier sandbox of a workspace left.
func (m *maker) endLeft(ctx context.Context, workspace string) error {
	m.mu.Lock()
	left := maps.Clone(m.left)
	m.mu.Unlock()
	for name, of := range left {
		if of != workspace {
			continue
		}
		if err := m.end(ctx, name); err != nil {
			return fmt.Errorf("an earlier sandbox of the workspace has not ended: %w", err)
		}
		m.mu.Lock()
		delete(m.left, name)
		m.mu.Unlock()
	}
	return nil
}

// Sweep ends what an earlier service left that kept its data on the same volume. The
// caller holds the data directory.
func (r *Runner) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	names, err := r.m.made(ctx)
	for _, name := range names {
		err = errors.Join(err, r.m.end(ctx, name))
	}
	if err != nil {
		return fmt.Errorf("remove what an earlier service left in %s: %w", r.m.o.Namespace, err)
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
