//go:build e2e

package replicas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// How long a consumer may be without a replica: when the one that delivered there is
// killed, until it has missed a beat and its Lease runs out; when it stops as planned, it
// says so; one that the fleet repo does not answer hands it over after half a minute, when
// the others have heard that.
const handover, planned, forsaken = 40 * time.Second, 5 * time.Second, time.Minute

// Each consumer is one replica's: the others take no part in the election for its Lease,
// and who decides knows what is seen there whichever replica delivers. When that one is
// killed another takes over, and contracts go on.
func TestEachConsumerIsOneReplicas(t *testing.T) {
	t.Parallel() // most of it is waiting
	consumers := []string{"rome", "oslo"}
	inputs := maps.Clone(asking)
	delete(inputs, "clusters/rome.yaml")
	inputs["tenants/vision.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome, oslo]}\n"
	ctx, h := newHubOf(t, rig.Options{Consumers: consumers, Inputs: inputs}, 2)
	t.Cleanup(func() {
		if t.Failed() {
			h.logs(context.Background())
		}
	})
	team, err := h.rig.Team(ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	h.awaitStore(ctx, h.all...)
	// Nothing is granted here: a contract whose slice is seen is Peering.
	ask := func(name string, within time.Duration) {
		t.Helper()
		files := map[string]string{}
		for _, consumer := range consumers {
			files["intents/vision/"+name+"-"+consumer+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + "-" + consumer + ", namespace: vision}\n" +
				"spec:\n  consumer: " + consumer + "\n  resources: {cpu: \"4\", memory: 16Gi, gpu: {count: 1, models: [nvidia-h100]}}\n"
		}
		if _, err := team.CommitAndPush(ctx, "Ask for "+name, files); err != nil {
			t.Fatal(err)
		}
		for _, consumer := range consumers {
			h.await(ctx, name+"-"+consumer+" to be Peering", within, func() error { return h.peering(ctx, name+"-"+consumer) })
		}
	}
	ask("first", time.Minute)
	// Who does not deliver to a cluster does not watch it either.
	for _, consumer := range consumers {
		h.await(ctx, "one replica to watch "+consumer, time.Minute, func() error { return h.watched(ctx, consumer, 1) })
	}

	lose := func(how string, within time.Duration, end func(*replica) error) *replica {
		t.Helper()
		lost, err := h.deliverer(ctx, "rome")
		if err == nil {
			err = end(lost)
		}
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		h.await(ctx, "another replica to deliver to rome when one "+how, within*slack, func() error {
			r, err := h.deliverer(ctx, "rome")
			if err == nil && r == lost {
				err = fmt.Errorf("%s still holds the Lease", r.Name)
			}
			return err
		})
		if took := time.Since(began); took > within*slack {
			t.Errorf("another replica delivers to rome %s after one %s, and should within %s", took.Round(time.Second), how, within)
		}
		return lost
	}
	ended := make(chan error, 1)
	stopped := lose("stops as planned", planned, func(r *replica) error {
		go func() { ended <- r.Stop() }() // it may answer requests for a while
		return nil
	})
	ask("second", time.Minute)
	if err := <-ended; err != nil {
		t.Errorf("a planned stop: %v", err)
	}
	if err := stopped.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	h.awaitStore(ctx, h.all...)
	apart := lose("cannot reach the fleet repo", forsaken, func(r *replica) error { r.git.Set(true); return nil })
	ask("apart", time.Minute)
	apart.git.Set(false)
	h.await(ctx, "it to read the fleet repo again", time.Minute, func() error { return apart.AwaitReady(ctx) })
	lose("is killed", handover, func(r *replica) error { return r.Kill() })
	ask("third", time.Minute)
}

// await waits for something to be no error.
func (h *hub) await(ctx context.Context, what string, within time.Duration, condition func() error) {
	h.t.Helper()
	began := time.Now()
	for {
		err := condition()
		if err == nil {
			h.t.Logf("%s: %s", what, time.Since(began).Round(10*time.Millisecond))
			return
		}
		if time.Since(began) > within+patience || ctx.Err() != nil {
			h.t.Fatalf("%s: %v", what, err)
		}
		rest(ctx, 200*time.Millisecond)
	}
}

// peering is an error unless the ledger has a contract of an intent in phase Peering.
func (h *hub) peering(ctx context.Context, intent string) error {
	text, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "grep", "-h", "phase:", rig.Ledger, "--", "contracts/vision/*/"+intent+"/vision-"+intent+"-*")
	if err == nil && !strings.Contains(text, "phase: Peering") {
		err = fmt.Errorf("its phases are %q", text)
	}
	return err
}

// deliverer is the replica that holds a consumer's Lease.
func (h *hub) deliverer(ctx context.Context, consumer string) (*replica, error) {
	client, err := kubernetes.NewForConfig(h.rig.Clusters[consumer].Config)
	if err != nil {
		return nil, err
	}
	var lease *coordinationv1.Lease
	if lease, err = client.CoordinationV1().Leases("fleetbroker").Get(ctx, "fleetbroker", metav1.GetOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%s has no Lease", consumer)
		}
		return nil, err
	}
	for _, r := range h.all {
		if lease.Spec.HolderIdentity != nil && strings.HasSuffix(*lease.Spec.HolderIdentity, "-"+r.Name) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("nobody holds the Lease of %s", consumer)
}

// watched is an error unless so many watch the slices of a consumer, as its API server
// counts.
func (h *hub) watched(ctx context.Context, consumer string, want int) error {
	client, err := kubernetes.NewForConfig(h.rig.Clusters[consumer].Config)
	if err != nil {
		return err
	}
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `resource="resourceslices"`) && strings.Contains(line, `verb="WATCH"`) {
			if _, count, _ := strings.Cut(strings.TrimSpace(line), "} "); count == strconv.Itoa(want) {
				return nil
			}
			return errors.New(strings.TrimSpace(line))
		}
	}
	return errors.New("nobody watches")
}
