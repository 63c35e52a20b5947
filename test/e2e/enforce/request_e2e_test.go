//go:build e2e

package enforce

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// apply gives a document to a cluster's API server as kubectl does.
func (f *fleet) apply(cluster, document string) (string, error) {
	return f.Clusters[cluster].Kubectl(f.ctx, f.Dir, "apply", "-f", f.file(document))
}

// file holds a document for kubectl.
func (f *fleet) file(document string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "document.yaml")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func request(name, spec string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceRequest\nmetadata: {name: " + name + ", namespace: default, annotations: {fleetbroker.io/owner: somebody else}}\nspec: " + spec + "\n"
}

// requestIn waits for a request's phase.
func (f *fleet) requestIn(name, phase string) *crd.ResourceRequest {
	f.t.Helper()
	o := &crd.ResourceRequest{}
	f.Eventually("request "+name+" is "+phase, func() error {
		if err := f.rome.Get(f.ctx, client.ObjectKey{Namespace: "default", Name: name}, o); err != nil {
			return err
		}
		if o.Status.Phase != phase {
			return fmt.Errorf("its status is %+v", o.Status)
		}
		return nil
	})
	return o
}

// A request made in a cluster ends as a commit, a granted slice and, deleted,
// as a released one; either side shows what it has with kubectl alone.
func TestAskedInTheCluster(t *testing.T) {
	f := start(t, nil)
	policy, err := os.ReadFile("../../../fleet-repo-template/install/agent/request-owner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := f.apply("rome", string(policy)); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	f.Eventually("the API server writes down who asks", func() error {
		out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "create", "--dry-run=server", "-o", "jsonpath={.metadata.annotations}", "-f", f.file(request("trial", "{resources: {cpu: 1}}")))
		if err == nil && (!strings.Contains(out, `"fleetbroker.io/owner":"`) || strings.Contains(out, "somebody else")) {
			err = fmt.Errorf("it answers %s", out)
		}
		return err
	})
	if out, err := f.apply("rome", request("train", `{resources: {cpu: 4, memory: 16Gi, pods: 4, ephemeral-storage: 10Gi, gpu: {count: 4, models: [nvidia-h100], memory: 80Gi}}, duration: 2h}`)); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	o := f.requestIn("train", crd.RequestActive)
	s := o.Status
	if s.TargetClusterID != "paris" || s.Contract == "" || s.ReservationName == "" || len(s.Commit) != 40 || s.ExpiresAt == nil || s.ReservedAt == nil {
		t.Errorf("status is %+v", s)
	}
	// The provider's agent says where its API server is; nothing in git does.
	if len(s.Contracts) != 1 || s.Contracts[0].Endpoint != f.Clusters["paris"].URL || f.written("vision", s.Contract).Spec.Endpoint != f.Clusters["paris"].URL {
		t.Errorf("the provider's endpoint is not %s: %+v", f.Clusters["paris"].URL, s.Contracts)
	}
	f.answered(s.Contract, accepted, "", 4)

	file, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "grep", "-h", "-e", "requester", "-e", "owner", "-e", string(o.UID), rig.Ledger, "--", "requests/vision/")
	owner := o.Annotations["fleetbroker.io/owner"]
	if err != nil || owner == "" || owner == "somebody else" || !strings.Contains(file, "default/train") || !strings.Contains(file, string(o.UID)) || !strings.Contains(file, "fleetbroker.io/owner: "+owner) {
		t.Errorf("the ledger does not say who asked: %v\n%s", err, file)
	}
	for _, see := range []struct{ cluster, kind, want string }{
		{"rome", "resourcerequests", s.Contract},
		{"rome", "reservationinstructions", "paris"},
		{"paris", "providerinstructions", "rome"},
		{"paris", "advertisements", "nvidia-h100"},
	} {
		f.Eventually("kubectl get "+see.kind+" in "+see.cluster, func() error {
			out, err := f.Clusters[see.cluster].Kubectl(f.ctx, f.Dir, "get", see.kind+".fleetbroker.io", "-A")
			if err == nil && !strings.Contains(out, see.want) {
				err = fmt.Errorf("it shows\n%s", out)
			}
			return err
		})
	}
	f.Eventually("the promise is shown as kept, and the offer as smaller", func() error {
		p, a := &crd.ProviderInstruction{}, &crd.Advertisement{}
		if err := f.paris.Get(f.ctx, client.ObjectKey{Name: s.Contract}, p); err != nil {
			return err
		}
		if err := f.paris.Get(f.ctx, client.ObjectKey{Name: "h100"}, a); err != nil {
			return err
		}
		if !p.Status.Enforced || p.Status.Slice != "Accepted" || p.Status.Granted["nvidia.com/gpu"] != "4" || a.Status.Held["gpu"] != "4" || a.Status.Available["gpu"] != "12" {
			return fmt.Errorf("%+v\n%+v", p.Status, a.Status)
		}
		return nil
	})

	if err := f.rome.Delete(f.ctx, o); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the request is gone", func() error {
		return gone(f.rome.Get(f.ctx, client.ObjectKeyFromObject(o), &crd.ResourceRequest{}))
	})
	f.Eventually("its contract is Released", func() error {
		if phase := f.History().Ended[s.Contract]; phase != "Released" {
			return fmt.Errorf("it is %q", phase)
		}
		return nil
	})
	if _, err := f.copyOf(s.Contract); !errors.IsNotFound(err) {
		t.Errorf("the slice is still there: %v", err)
	}
	f.Eventually("no mirror of it is left", func() error {
		for _, err := range []error{
			f.rome.Get(f.ctx, client.ObjectKey{Name: s.Contract}, &crd.ReservationInstruction{}),
			f.paris.Get(f.ctx, client.ObjectKey{Name: s.Contract}, &crd.ProviderInstruction{}),
		} {
			if err := gone(err); err != nil {
				return err
			}
		}
		return nil
	})
	f.Sound()
}

// What cannot be had, waits in the queue or is refused; what makes no sense is
// refused by the API server.
func TestAskedForTooMuch(t *testing.T) {
	f := start(t, nil)
	const much = `resources: {cpu: 4, memory: 16Gi, gpu: {count: 17}}`
	for name, spec := range map[string]string{"never": "{" + much + "}", "later": "{" + much + ", queue: {policy: wait}}"} {
		if out, err := f.apply("rome", request(name, spec)); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if o := f.requestIn("never", crd.RequestFailed); o.Status.Reason != "NothingFits" || !strings.Contains(o.Status.Message, "it has too few GPUs free") {
		t.Errorf("status is %+v", o.Status)
	}
	f.Eventually("the other waits in the queue", func() error {
		o := f.requestIn("later", crd.RequestPending)
		if o.Status.ReservationName == "" {
			return fmt.Errorf("status is %+v", o.Status)
		}
		return nil
	})
	for name, spec := range map[string]string{
		"nothing":                 "{resources: {}}",
		"no cores":                "{resources: {cpu: 0}}",
		"count and share":         "{resources: {gpu: {count: 1, share: \"0.5\"}}}",
		"neither":                 "{resources: {gpu: {models: [nvidia-h100]}}}",
		"three days":              "{resources: {cpu: 1}, duration: 3 days}",
		"no time":                 "{resources: {cpu: 1}, duration: 0h}",
		"a wait that fails":       "{resources: {cpu: 1}, queue: {policy: fail, timeout: 1h}}",
		"a budget of nothing":     "{resources: {cpu: 1}, budget: {currency: EUR}}",
		"a priority of thousands": "{resources: {cpu: 1}, priority: 4000}",
		"more than all":           "{resources: {cpu: 1}, replicas: 2, minReplicas: 3}",
	} {
		if out, err := f.apply("rome", request("bad", spec)); err == nil {
			t.Errorf("%s: was taken: %s", name, out)
		}
	}
	never := &crd.ResourceRequest{}
	never.Name, never.Namespace = "later", "default"
	if err := f.rome.Patch(f.ctx, never, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"priority":7}}`))); err == nil {
		t.Error("a request was changed after it was made")
	}
}

// gone is an error unless what was asked for was not found.
func gone(err error) error {
	switch {
	case errors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("it is still there")
	}
	return err
}
