//go:build e2e

package replicas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// scarce is the provider whose GPUs, of a model of their own, are few.
const scarce, scarceModel = "p00", "nvidia-l4"

// faulty is a fleet of three replicas, with agents that report, and a team.
type faulty struct {
	*hub
	team   *env.Team
	agents []*agent
}

// The store fails in each of the ways that it can while agents report and a team asks:
// what replicas know is never older than what they acknowledged, nobody who reports is
// silent, nothing is placed on what the store had before, and all goes on afterwards.
func TestStoreFaults(t *testing.T) {
	t.Parallel() // most of it is waiting
	inputs := maps.Clone(asking)
	delete(inputs, "clusters/paris.yaml")
	delete(inputs, "flavors/paris/h100.yaml")
	maps.Copy(inputs, fleetOf(5))
	ctx, h := newHub(t, inputs, 3, "--agent-silence", silence.String())
	team, err := h.rig.Team(ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{hub: h, team: team}
	t.Cleanup(func() {
		if t.Failed() {
			h.logs(context.Background())
		}
	})
	h.awaitStore(ctx, h.all...)
	running, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	for i := range 4 {
		f.agents = append(f.agents, h.agent(provider(i)))
		if provider(i) == scarce {
			f.agents[i].model = scarceModel
		}
		wait.Go(func() { f.agents[i].run(running) })
	}
	h.agree(ctx, "all have reported", f.agents, h.all...)
	for _, one := range []struct {
		name string
		run  func(*testing.T, context.Context, *faulty)
	}{{"compacted", compacted}, {"set back", setBack}, {"full", full}, {"quota", quota}, {"forbidden", forbidden}, {"slow", slow}} {
		if !t.Run(one.name, func(t *testing.T) { one.run(t, ctx, f) }) {
			return
		}
	}
	log, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "log", "--format=%s", rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scarce", "while-full", "while-slow"} {
		if n := strings.Count(log, "place vision/"+name+" "); n != 1 {
			t.Errorf("%s was placed %d times:\n%s", name, n, log)
		}
	}
}

// ask commits an intent for some GPUs of a model.
func (f *faulty) ask(ctx context.Context, name, model string, gpus int) {
	f.t.Helper()
	file := "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + ", namespace: vision}\n" +
		fmt.Sprintf("spec:\n  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, gpu: {count: %d, models: [%s]}}\n", gpus, model)
	if _, err := f.team.CommitAndPush(ctx, "Ask for "+name, map[string]string{"intents/vision/" + name + ".yaml": file}); err != nil {
		f.t.Fatal(err)
	}
}

// unplaced watches for a while that an intent is not placed.
func (f *faulty) unplaced(ctx context.Context, t *testing.T, what, name string, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); rest(ctx, 200*time.Millisecond) {
		if f.placed(ctx, name) {
			t.Fatalf("%s: %s is placed", what, name)
		}
	}
}

// heard watches for a while that nobody who reports is silent or lost to any replica.
func (f *faulty) heard(ctx context.Context, t *testing.T, what string, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); rest(ctx, 500*time.Millisecond) {
		for _, r := range f.all {
			if got, err := f.shown(ctx, r); err == nil && (strings.Contains(got, "(silent") || strings.Contains(got, "(lost")) {
				t.Fatalf("%s: %s shows %s", what, r.Name, got)
			}
		}
	}
}

// reason is why a check of a replica's readiness fails, "" when it does not.
func (f *faulty) reason(ctx context.Context, r *replica, check string) string {
	got, err := r.Readiness(ctx)
	if err != nil {
		return ""
	}
	for _, c := range got.Checks {
		if c.Name == check && !c.OK {
			return c.Reason
		}
	}
	return ""
}

// awaitReason waits until a check of a replica fails for a reason.
func (f *faulty) awaitReason(ctx context.Context, t *testing.T, r *replica, check, want string) {
	t.Helper()
	f.await(ctx, fmt.Sprintf("%s of %s to say %q", check, r.Name, want), 30*time.Second, func() error {
		if got := f.reason(ctx, r, check); !strings.Contains(got, want) {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
}

// etcd is compacted while the replicas are cut off, and the API server starts again: what
// each watched is gone (410), and each lists all again.
func compacted(t *testing.T, ctx context.Context, f *faulty) {
	objects := f.objects()
	list := &marketcrd.AdvertisementList{}
	if err := objects.List(ctx, list); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.all {
		r.api.Set(true)
	}
	if err := f.revise(ctx, 20); err != nil {
		t.Fatal(err)
	}
	revision, err := f.CompactEtcd(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := f.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.gone(ctx, list.ResourceVersion); err != nil {
		t.Fatalf("etcd is compacted to %s: %v", revision, err)
	}
	for _, r := range f.all {
		r.api.Set(false)
	}
	f.awaitStore(ctx, f.all...)
	f.agents[1].change(16)
	f.agents[1].report(ctx)
	f.agree(ctx, "after etcd was compacted", f.agents, f.all...)
	f.heard(ctx, t, "after etcd was compacted", 10*time.Second)
}

// revise makes revisions of objects that are not the market's.
func (f *faulty) revise(ctx context.Context, n int) error {
	client, err := kubernetes.NewForConfig(f.Config)
	if err != nil {
		return err
	}
	for i := range n {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "revision-", Namespace: rigtest.HubNamespace}, Data: map[string]string{"n": fmt.Sprint(i)}}
		if _, err := client.CoreV1().ConfigMaps(rigtest.HubNamespace).Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// gone is an error unless a watch of a version is refused with 410.
func (f *faulty) gone(ctx context.Context, version string) error {
	client, err := kubernetes.NewForConfig(f.Config)
	if err != nil {
		return err
	}
	stream, err := client.CoreV1().RESTClient().Get().AbsPath("/apis/market.fleetbroker.io/v1alpha1/namespaces/"+rigtest.HubNamespace+"/advertisements").
		Param("watch", "1").Param("resourceVersion", version).Param("timeoutSeconds", "3").Stream(ctx)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(stream)
	if err = errors.Join(err, stream.Close()); err == nil && !strings.Contains(string(text), `"code":410`) {
		err = fmt.Errorf("a watch of version %s gives %.300s", version, text)
	}
	return err
}

// etcd is set back to when a provider had more than it has: nothing is placed on that, and
// what it reported since comes back.
func setBack(t *testing.T, ctx context.Context, f *faulty) {
	backup := filepath.Join(t.TempDir(), "etcd")
	if err := f.BackUpEtcd(ctx, backup); err != nil {
		t.Fatal(err)
	}
	f.awaitStore(ctx, f.all...)
	few := f.agents[0]
	few.change(2)
	few.report(ctx)
	f.agree(ctx, "one has less", f.agents, f.all...)
	if err := f.revise(ctx, 300); err != nil { // the store is well behind what it was
		t.Fatal(err)
	}
	if err := f.RestoreEtcd(ctx, backup); err != nil {
		t.Fatal(err)
	}
	f.ask(ctx, "scarce", scarceModel, 4)
	f.unplaced(ctx, t, "the store was set back to when there was more", "scarce", 15*time.Second)
	f.awaitStore(ctx, f.all...)
	f.agree(ctx, "after it was set back", f.agents, f.all...)
	f.heard(ctx, t, "after it was set back", 10*time.Second)
	if err := f.all[2].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := f.all[2].Restart(ctx); err != nil { // it knows what is in the store alone
		t.Fatal(err)
	}
	f.awaitStore(ctx, f.all...)
	f.agree(ctx, "who starts later", f.agents, f.all...)
	f.unplaced(ctx, t, "what the provider reported last is known", "scarce", 3*time.Second)
	few.change(8)
	few.report(ctx)
	f.await(ctx, "scarce to be placed where there is more", 20*time.Second, f.isPlaced(ctx, "scarce"))
}

func (f *faulty) isPlaced(ctx context.Context, name string) func() error {
	return func() error {
		if !f.placed(ctx, name) {
			return errors.New("it is not")
		}
		return nil
	}
}

// etcd is full: writes are refused, which each replica says as such; nothing is placed,
// and all goes on when there is room.
func full(t *testing.T, ctx context.Context, f *faulty) {
	if err := f.FillEtcd(ctx, true); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.all {
		f.awaitReason(ctx, t, r, "market-writes", "database space exceeded")
		f.awaitReason(ctx, t, r, "market", "database space exceeded")
	}
	f.ask(ctx, "while-full", "nvidia-h100", 1)
	f.unplaced(ctx, t, "etcd is full", "while-full", 6*time.Second)
	if err := f.FillEtcd(ctx, false); err != nil {
		t.Fatal(err)
	}
	f.awaitStore(ctx, f.all...)
	f.await(ctx, "while-full to be placed", 30*time.Second, f.isPlaced(ctx, "while-full"))
	f.heard(ctx, t, "after etcd was full", 8*time.Second)
	for _, r := range f.all {
		if got := f.reason(ctx, r, "market-writes"); strings.Contains(got, "heartbeat") {
			t.Errorf("%s still says %s", r.Name, got)
		}
	}
}

// A quota refuses one provider too many: it is told so, in /readyz too, and the others go
// on.
func quota(t *testing.T, ctx context.Context, f *faulty) {
	client, err := kubernetes.NewForConfig(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	quotas := client.CoreV1().ResourceQuotas(rigtest.HubNamespace)
	const name = corev1.ResourceName("count/advertisements.market.fleetbroker.io")
	limits := corev1.ResourceList{name: resource.MustParse("4")}
	q, err := quotas.Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "market"}, Spec: corev1.ResourceQuotaSpec{Hard: limits}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: limits, Used: limits} // its controller, which counts, does not run here
	if _, err := quotas.UpdateStatus(ctx, q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	late := f.agent(provider(4))
	f.await(ctx, "one too many to be refused", 20*time.Second, func() error {
		err := late.line.Put(ctx, late.generation, late.list(), 0)
		var refusal *wire.Refusal
		if errors.As(err, &refusal) && strings.Contains(refusal.Body.Error, "exceeded quota") && strings.Contains(refusal.Body.Error, "ResourceQuota") {
			return nil
		}
		return fmt.Errorf("it is answered %w", err)
	})
	said := 0
	for _, r := range f.all {
		if why := f.reason(ctx, r, "market-writes"); strings.Contains(why, "advertisement "+late.name) && strings.Contains(why, "exceeded quota") {
			said++
		}
		if why := f.storeTrouble(ctx, r); why != "" {
			t.Errorf("%s, of which one object is refused, says %s", r.Name, why)
		}
	}
	if said == 0 {
		t.Error("no replica says what is refused")
	}
	f.agents[2].change(12)
	f.agents[2].report(ctx)
	f.agree(ctx, "the others go on", f.agents, f.all...)
	if err := quotas.Delete(ctx, "market", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.agents = append(f.agents, late)
	f.await(ctx, "one that was too many to be taken", 30*time.Second, func() error {
		late.report(ctx)
		if late.acked == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	f.agree(ctx, "one more", f.agents, f.all...)
}

// The Lease of who decides is refused to everybody, as where an account lacks the right:
// nobody decides, each says why, and one decides when it may.
func forbidden(t *testing.T, ctx context.Context, f *faulty) {
	client, err := kubernetes.NewForConfig(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	policies, bindings := client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	reason := metav1.StatusReasonForbidden
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "nobody-decides"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{ResourceNames: []string{daemon.Lease}, RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{"coordination.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"leases"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "nobody decides", Reason: &reason}},
	}}
	if _, err := policies.Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	if _, err := bindings.Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.all {
		f.awaitReason(ctx, t, r, "leader-lease", "nobody decides")
	}
	f.heard(ctx, t, "nobody decides", 3*time.Second)
	if err := bindings.Delete(ctx, policy.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await(ctx, "one that may decide", 30*time.Second, func() error {
		for _, r := range f.all {
			if why := f.reason(ctx, r, "leader-lease"); why != "" {
				return errors.New(why)
			}
		}
		return nil
	})
}

// Each answer of the store takes five seconds, for all replicas: they say that it cannot be
// used, nothing is placed, and nobody who reports is silent, then or afterwards.
func slow(t *testing.T, ctx context.Context, f *faulty) {
	for _, r := range f.all {
		r.api.Slow(5 * time.Second)
	}
	for _, r := range f.all {
		f.await(ctx, r.Name+" to say that the store cannot be used", 45*time.Second, func() error {
			if f.reason(ctx, r, "market") == "" {
				return errors.New("it does not")
			}
			return nil
		})
	}
	f.ask(ctx, "while-slow", "nvidia-h100", 1)
	f.unplaced(ctx, t, "the store is slow", "while-slow", 6*time.Second)
	f.heard(ctx, t, "the store is slow", 3*time.Second)
	for _, r := range f.all {
		r.api.Slow(0)
	}
	f.awaitStore(ctx, f.all...)
	f.await(ctx, "while-slow to be placed", 30*time.Second, f.isPlaced(ctx, "while-slow"))
	f.heard(ctx, t, "after the store was slow", 8*time.Second)
	f.agree(ctx, "after the store was slow", f.agents, f.all...)
}
