package agent

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/admission/hook"
)

// admits reports whether the agent is the cluster's form of admission.
func (o *Options) admits() bool { return o.WebhookAddress != "" && o.WebhookAddress != "0" }

// admit has the manager serve the webhook, on every replica.
func (a *agent) admit() error {
	if !a.admits() {
		return nil
	}
	if a.LeaseNamespace == "" || a.WebhookConfiguration == "" {
		return errors.New("the webhook needs the namespace of its Secret and the name of its configuration: give --leader-election-namespace and --webhook-configuration")
	}
	own, err := kubernetes.NewForConfig(a.Config)
	if err != nil {
		return fmt.Errorf("reach the cluster for the webhook: %w", err)
	}
	// One read for each pod that is made, or that a stranger says is made. They do not hold
	// up the certificate.
	config := rest.CopyConfig(a.Config)
	config.QPS, config.Burst, config.RateLimiter = 100, 200, nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("reach the cluster for the webhook: %w", err)
	}
	keeper := &hook.Keeper{Client: own, Namespace: a.LeaseNamespace, Configuration: a.WebhookConfiguration, Now: time.Now, Log: a.Log}
	if err := a.mgr.Add(keeper); err != nil {
		return err
	}
	return a.mgr.Add(&hook.Server{Address: a.WebhookAddress, Client: client, Certificate: keeper.Certificate, ClientCA: a.WebhookClientCA, Log: a.Log})
}
