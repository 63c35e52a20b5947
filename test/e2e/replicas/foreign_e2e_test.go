//go:build e2e && full

package replicas

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/kube"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// An account that may write the store's objects says that it wrote a field that the daemon
// never changes, and in a hundred years: the daemon's next word is the daemon's again.
func TestForeignTimeToCome(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	hub := rigtest.NewHub(ctx, t)
	api, err := kube.New(hub.Config, rigtest.HubNamespace)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := marketcrd.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	other, err := client.New(hub.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	far := metav1.NewTime(time.Now().AddDate(100, 0, 0))
	forge := func(o client.Object, field string) {
		t.Helper()
		o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: "curl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: marketcrd.GroupVersion.String(), Time: &far,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + field + `":{}}}`),
		}))
		if err := other.Update(ctx, o, client.FieldOwner("curl")); err != nil {
			t.Fatal(err)
		}
		if len(store.Foreign(o.GetManagedFields())) == 0 {
			t.Fatalf("it does not look foreign: %+v", o.GetManagedFields())
		}
	}
	get := func(name string, into client.Object) {
		t.Helper()
		if err := other.Get(ctx, client.ObjectKey{Namespace: rigtest.HubNamespace, Name: name}, into); err != nil {
			t.Fatal(err)
		}
	}
	owned := func(what string, o client.Object) {
		t.Helper()
		if by := store.Foreign(o.GetManagedFields()); len(by) > 0 {
			t.Errorf("%s is of %+v", what, by)
		}
	}

	ad := &marketcrd.Advertisement{}
	ad.Name = "paris"
	ad.Spec = marketcrd.AdvertisementSpec{Generation: "7.1", Replica: "a", ReportedAt: metav1.Now(), Report: []byte("x"), Digest: "00"}
	first, err := api.PutAdvertisement(ctx, ad)
	is := &marketcrd.Advertisement{}
	if err == nil {
		get("paris", is)
		owned("the first advertisement", is)
		forge(is, "replica")
		ad.Spec.Generation, ad.ResourceVersion = "7.2", first.ResourceVersion
		if _, err := api.PutAdvertisement(ctx, ad); !errors.Is(err, store.ErrConflict) {
			t.Errorf("what another wrote meanwhile is written over: %v", err)
		}
		ad.ResourceVersion = is.ResourceVersion
		_, err = api.PutAdvertisement(ctx, ad)
	}
	if err != nil {
		t.Fatal(err)
	}
	if is, err = api.Advertisement(ctx, "paris"); err != nil || len(is.ManagedFields) > 0 || is.Spec.Generation != "7.2" {
		t.Errorf("the advertisement is of %+v: %v", is.ManagedFields, err)
	}

	beat := &marketcrd.Heartbeat{Spec: marketcrd.HeartbeatSpec{Life: "9", Beat: 1, At: metav1.Now(), Serving: true, Address: "a:8443"}}
	beat.Name = "a"
	for range 2 {
		if _, err := api.PutHeartbeat(ctx, beat); err != nil {
			t.Fatal(err)
		}
		now := &marketcrd.Heartbeat{}
		get("a", now)
		owned("the heartbeat", now)
		forge(now, "address")
		beat.Spec.Beat++
	}
	if _, err := api.PutHeartbeat(ctx, beat); err != nil {
		t.Fatal(err)
	}
	now := &marketcrd.Heartbeat{}
	get("a", now)
	owned("the heartbeat", now)
}
