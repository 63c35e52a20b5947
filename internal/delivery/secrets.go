package delivery

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// KubernetesSecrets reads Secrets of one namespace of the cluster that the
// daemon runs in. It needs the verb get on secrets there.
type KubernetesSecrets struct {
	// Client of the daemon's own cluster.
	Client kubernetes.Interface
	// Namespace of the daemon.
	Namespace string
}

// Secret implements Secrets.
func (s KubernetesSecrets) Secret(ctx context.Context, name string) (map[string][]byte, map[string]string, error) {
	secret, err := s.Client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	return secret.Data, secret.Labels, nil
}
