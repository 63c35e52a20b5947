package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// readTimeout is for how long the metrics API may take: what was measured before it counts
// until it has answered.
const readTimeout = 30 * time.Second

// Meter reads what pods use from the cluster's metrics API.
type Meter struct {
	get  func(ctx context.Context, selector string) ([]byte, error)
	log  *slog.Logger
	told string
}

// NewMeter asks a cluster's API server.
func NewMeter(config *rest.Config, log *slog.Logger) (*Meter, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read the metrics API: %w", err)
	}
	return &Meter{log: log, get: func(ctx context.Context, selector string) ([]byte, error) {
		return client.RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/pods").Param("labelSelector", selector).DoRaw(ctx)
	}}, nil
}

// podMetrics is what is read of metrics.k8s.io/v1beta1 PodMetrics.
type podMetrics struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Containers []struct {
		Usage map[string]string `json:"usage"`
	} `json:"containers"`
}

// Read is what the pods that a selector finds use of CPU and memory, nil where
// nothing is measured: the metrics API is not there, or may not be read.
func (m *Meter) Read(ctx context.Context, selector string) map[types.NamespacedName]v1alpha1.Resources {
	within, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	text, err := m.get(within, selector)
	var list struct {
		Items []podMetrics `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		if ctx.Err() == nil {
			m.say(err)
		}
		return nil
	}
	m.say(nil)
	out := make(map[types.NamespacedName]v1alpha1.Resources, len(list.Items))
	for i := range list.Items {
		p := &list.Items[i]
		sum := v1alpha1.Resources{}
		for _, c := range p.Containers {
			for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory} {
				q, err := v1alpha1.ParseQuantity(c.Usage[name])
				if err != nil {
					continue // not measured yet
				}
				if a, err := v1alpha1.AmountOfQuantity(name, q); err == nil {
					sum[name] = sum[name].Add(a)
				}
			}
		}
		out[types.NamespacedName{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name}] = sum
	}
	return out
}

// say logs once that the metrics API cannot be read, and once that it can.
func (m *Meter) say(err error) {
	text := ""
	if err != nil {
		text = string(apierrors.ReasonForError(err)) + " "
	}
	if text == m.told {
		return
	}
	if err != nil {
		m.log.Info("the use of contracts is taken from their pods' requests: the metrics API cannot be read", "error", err)
	} else {
		m.log.Info("the use of contracts is measured")
	}
	m.told = text
}
