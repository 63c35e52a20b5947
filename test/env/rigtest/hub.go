package rigtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// HubNamespace is where replicas share their market and their Lease.
const HubNamespace = "fleetbroker"

// Hub is the cluster in which a daemon's replicas share one market.
type Hub struct {
	*env.Cluster
	client kubernetes.Interface
}

// NewHub starts one: an API server with the project's kinds.
func NewHub(ctx context.Context, t testing.TB) *Hub {
	t.Helper()
	h := &Hub{Cluster: envtest.Cluster(t, env.ClusterOptions{Name: "hub"})}
	if err := env.InstallAgentCRDs(ctx, h.Config); err != nil { // all kinds of the project
		t.Fatal(err)
	}
	var err error
	if h.client, err = kubernetes.NewForConfig(h.Config); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: HubNamespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return h
}

// Args make a daemon one of the replicas; kubeconfig is a file, "" for the
// administrator's own.
func (h *Hub) Args(kubeconfig string) []string {
	if kubeconfig == "" {
		kubeconfig = h.KubeconfigPath
	}
	return []string{"--market-store", "kubernetes", "--market-kubeconfig", kubeconfig, "--market-namespace", HubNamespace}
}

// Decides is who of some names of daemons (rig.Daemon) decides, "" for nobody that
// is known.
func (h *Hub) Decides(ctx context.Context, names ...string) (string, error) {
	lease, err := h.client.CoordinationV1().Leases(HubNamespace).Get(ctx, daemon.Lease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look who decides: %w", err)
	}
	if lease.Spec.HolderIdentity != nil {
		for _, name := range names {
			if strings.HasSuffix(*lease.Spec.HolderIdentity, "-"+name) {
				return name, nil
			}
		}
	}
	return "", nil
}
