//go:build e2e

package reservations

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"testing"
	"time"

	public "github.com/fleetbroker/fleetbroker/schemas/client"
	"github.com/fleetbroker/fleetbroker/schemas/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// asCluster is a client of the agents' port with a cluster's certificate, "" for none.
func asCluster(t *testing.T, r *rig.Rig, d *rig.Daemon, cluster string) *public.Client {
	t.Helper()
	files, err := r.Files("paris")
	if cluster != "" {
		files, err = r.Files(cluster)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := files.Load()
	if err != nil {
		t.Fatal(err)
	}
	of := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: m.Authorities, ServerName: "localhost"}
	if cluster != "" {
		of.Certificates = []tls.Certificate{m.Pair}
	}
	c, err := public.New(public.Options{URL: "https://" + d.Agents, TLS: of})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPublicClient: a program that imports schemas/client alone reports, reserves, is told,
// reads the pages, and releases, against a daemon as it is installed.
func TestPublicClient(t *testing.T) {
	ctx, r := start(t, nil)
	d := daemon(ctx, t, r, "a")
	paris, rome := asCluster(t, r, d, "paris"), asCluster(t, r, d, "rome")
	operators, err := public.New(public.Options{URL: "http://" + d.Operators})
	if err != nil {
		t.Fatal(err)
	}

	f := v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "h100-pool", Namespace: "paris"}, Spec: v1alpha1.FlavorSpec{Type: "K8Slice", Class: "default", Capacity: v1alpha1.Resources{}}}
	for resource, text := range map[string]string{"cpu": "64", "memory": "512Gi", "pods": "110", v1alpha1.GPU: "8"} {
		if f.Spec.Capacity[resource], err = v1alpha1.ParseAmount(resource, text); err != nil {
			t.Fatal(err)
		}
	}
	f.Spec.GPU = &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"}
	if err := paris.ReportFlavors(ctx, "paris", "1.1", nil); !public.Is(err, v1alpha1.ReasonUnknownBase) {
		t.Errorf("a report without a list before there is one: %v", err)
	}
	if err := paris.ReportFlavors(ctx, "paris", "1.1", &v1alpha1.FlavorReport{Flavors: []v1alpha1.Flavor{f}}); err != nil {
		t.Fatal(err)
	}
	var refused *public.Error
	if err := paris.ReportFlavors(ctx, "rome", "1.1", nil); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("paris reports for rome: %v", err)
	}
	market, err := operators.Market(ctx, public.MarketQuery{Provider: "paris"}, public.Wait{})
	if err != nil || len(market.Flavors) != 1 || market.Flavors[0].Metadata.Name != "h100-pool" {
		t.Fatalf("market: %+v, %v", market, err)
	}

	amount := v1alpha1.Quantities{CPU: "4", Memory: "16Gi", GPU: "2"}
	ask := v1alpha1.ReservationRequest{RequestedResources: &amount, Duration: "1h"}
	got, err := rome.Reserve(ctx, "one", ask)
	if err != nil || got.Status.Phase != v1alpha1.ReservationPhaseReserved || len(got.Contracts) != 1 || got.TargetClusterID != "paris" {
		t.Fatalf("reserve: %+v, %v", got, err)
	}
	if again, err := rome.Reserve(ctx, "one", ask); err != nil || again.ID != got.ID || again.Contract != got.Contract {
		t.Errorf("again with the same key: %+v, %v", again, err)
	}
	ask.Duration = "2h"
	if _, err := rome.Reserve(ctx, "one", ask); !public.Is(err, v1alpha1.ReasonKeyReused) {
		t.Errorf("another request with the same key: %v", err)
	}
	amount.GPU = "64"
	if _, err := rome.Reserve(ctx, "", ask); !errors.As(err, &refused) || refused.Status != http.StatusConflict || refused.Body.Considered != 1 {
		t.Errorf("more than there is: %v", err)
	}

	t.Run("instructions", func(t *testing.T) {
		in, err := rome.Instructions(ctx, "rome", public.Wait{})
		if err != nil || len(in.Consume) != 1 || in.Consume[0].Contract != got.Contract {
			t.Fatalf("instructions: %+v, %v", in, err)
		}
		if more, err := rome.Instructions(ctx, "rome", public.Wait{Since: in.Version, For: 100 * time.Millisecond}); more != nil || err != nil {
			t.Errorf("nothing newer: %+v, %v", more, err)
		}
		soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		if _, err := rome.Instructions(soon, "rome", public.Wait{Since: in.Version, For: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that ends: %v", err)
		}
	})
	t.Run("pages", func(t *testing.T) { pages(ctx, t, operators, got) })
	t.Run("credentials", func(t *testing.T) {
		if _, err := asCluster(t, r, d, "").Pods(ctx); err == nil || errors.As(err, &refused) { // the handshake fails: there is no answer
			t.Errorf("without a certificate: %v", err)
		}
		unknown, err := public.New(public.Options{URL: "https://" + d.Agents})
		if err != nil {
			t.Fatal(err)
		}
		var authority *tls.CertificateVerificationError
		if _, err := unknown.Pods(ctx); !errors.As(err, &authority) {
			t.Errorf("an authority that is not trusted: %v", err)
		}
		token := func(context.Context) (string, error) { return "x", nil }
		if _, err := public.New(public.Options{URL: "http://fleet.example.org", Token: token}); err == nil {
			t.Error("a token is sent without TLS")
		}
	})

	if err := rome.Release(ctx, got.ID); err != nil {
		t.Error(err)
	}
	if err := rome.Release(ctx, "rq-none"); !public.Is(err, v1alpha1.ReasonNotFound) {
		t.Errorf("a reservation that there is not: %v", err)
	}
}

// pages reads those of the operators' port.
func pages(ctx context.Context, t *testing.T, c *public.Client, of *v1alpha1.Reservation) {
	if ready, err := c.Ready(ctx); err != nil || !ready.Ready || len(ready.Checks) < 3 {
		t.Errorf("readiness: %+v, %v", ready, err)
	}
	until := time.Now().Add(patience)
	for {
		p, err := c.Contract(ctx, of.Contract, public.Query{})
		if err == nil && p.Data.Contract.Spec.Provider == "paris" && p.Data.GPUs == 2 && p.Ledger != "" {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the contract's page: %+v, %v", p, err)
		}
		<-time.After(50 * time.Millisecond)
	}
	list, err := c.Contracts(ctx, public.Query{Tenant: "vision", Size: 1})
	if err != nil || list.Data.Total != 1 || list.Data.Items[0].Name != of.Contract {
		t.Errorf("contracts: %+v, %v", list, err)
	}
	intent, err := c.Intent(ctx, "vision", of.ID, public.Query{})
	if err != nil || len(intent.Data.Contracts) != 1 {
		t.Errorf("intent: %+v, %v", intent, err)
	}
	if _, err := c.Cost(ctx, public.Query{By: "weather"}); !public.Is(err, "BadQuery") {
		t.Errorf("costs by what nothing is added up by: %v", err)
	}
}
