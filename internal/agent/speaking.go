package agent

import (
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fleetbroker/fleetbroker/internal/leaselock"
)

// Times of the election of who speaks for the cluster: controller-runtime's own.
var (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// speaking is the Lease by which one of several replicas speaks for the cluster, nil
// without a namespace. A replica that was frozen or cut off leaves it to the one that
// has taken over.
func speaking(config *rest.Config, namespace string) (resourcelock.Interface, error) {
	if namespace == "" {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this replica: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Timeout = renewDeadline / 2 // one call that hangs must not lose the Lease
	client, err := coordinationv1.NewForConfig(rest.AddUserAgent(config, "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("elect who speaks for the cluster: %w", err)
	}
	return leaselock.Own(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: leaseName, Namespace: namespace},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}), nil
}
