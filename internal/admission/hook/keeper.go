package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// SecretName is the Secret with authority and certificate, in the agent's namespace.
// The install base makes it empty.
const SecretName = "fleet-agent-webhook"

// How often the Keeper looks, and after a failure.
const (
	lookInterval  = time.Minute
	retryInterval = 5 * time.Second
)

// Keeper keeps certificate and caBundle.
type Keeper struct {
	// Client of the cluster.
	Client kubernetes.Interface
	// Namespace of the Secret, Configuration the name of the MutatingWebhookConfiguration.
	Namespace, Configuration string
	// Now is the clock.
	Now func() time.Time
	// Log of what it does.
	Log *slog.Logger

	leaf atomic.Pointer[tls.Certificate]
	said string // the failure logged last
}

// Start keeps until the context ends. It is a Runnable of controller-runtime.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		wait := lookInterval
		if err := k.step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			wait = retryInterval
			if said := err.Error(); said != k.said {
				k.said = said
				k.Log.Warn("webhook is not ready", "error", err)
			}
		} else {
			k.said = ""
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// NeedLeaderElection says that every replica keeps.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Certificate is what the server shows: an error before the first is there.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if leaf := k.leaf.Load(); leaf != nil {
		return leaf, nil
	}
	return nil, errors.New("the webhook has no certificate yet")
}

// step brings Secret and configuration one step further and shows a certificate once the
// configuration trusts it.
func (k *Keeper) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	configurations := k.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := configurations.Get(ctx, k.Configuration, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read MutatingWebhookConfiguration %s: %w; apply the component webhook of install/agent", k.Configuration, err)
	}
	hosts, err := hostsIn(configuration)
	if err != nil {
		return err
	}
	secrets := k.Client.CoreV1().Secrets(k.Namespace)
	secret, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Secret %s/%s: %w; apply the component webhook of install/agent", k.Namespace, SecretName, err)
	}
	m, changed, err := readMaterial(secret.Data).renew(k.Now(), hosts, bundleIn(configuration))
	if err != nil {
		return err
	}
	if changed {
		if secret.Data, err = m.data(); err != nil {
			return err
		}
		if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
			return fmt.Errorf("another replica renews the certificate: %w", err)
		} else if err != nil {
			return fmt.Errorf("write Secret %s/%s: %w", k.Namespace, SecretName, err)
		}
		k.Log.Info("webhook certificate renewed", "until", m.leaf.Leaf.NotAfter, "authorities", len(m.authorities))
	}
	if bundle := m.bundle(); !bytes.Equal(bundleIn(configuration), bundle) {
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.CABundle = bundle
		}
		if _, err := configurations.Update(ctx, configuration, metav1.UpdateOptions{FieldManager: "fleet-agent"}); err != nil {
			return fmt.Errorf("write caBundle of MutatingWebhookConfiguration %s: %w", k.Configuration, err)
		}
		k.Log.Info("webhook authorities written", "configuration", k.Configuration, "authorities", len(m.authorities))
	}
	k.leaf.Store(m.leaf)
	return nil
}

// hostsIn are the names by which an API server reaches a configuration's webhooks, sorted.
func hostsIn(c *admissionv1.MutatingWebhookConfiguration) ([]string, error) {
	var out []string
	for _, w := range c.Webhooks {
		switch {
		case w.ClientConfig.Service != nil:
			out = append(out, w.ClientConfig.Service.Name+"."+w.ClientConfig.Service.Namespace+".svc")
		case w.ClientConfig.URL != nil:
			u, err := url.Parse(*w.ClientConfig.URL)
			if err != nil || u.Hostname() == "" {
				return nil, fmt.Errorf("webhook %s of MutatingWebhookConfiguration %s has no host in its URL", w.Name, c.Name)
			}
			out = append(out, u.Hostname())
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("MutatingWebhookConfiguration %s has no webhooks; apply the component webhook of install/agent", c.Name)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// bundleIn is the bundle that all of a configuration's webhooks have, nil where they differ.
func bundleIn(c *admissionv1.MutatingWebhookConfiguration) []byte {
	for _, w := range c.Webhooks {
		if !bytes.Equal(w.ClientConfig.CABundle, c.Webhooks[0].ClientConfig.CABundle) {
			return nil
		}
	}
	if len(c.Webhooks) == 0 {
		return nil
	}
	return c.Webhooks[0].ClientConfig.CABundle
}
