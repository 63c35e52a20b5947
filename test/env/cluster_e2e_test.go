//go:build e2e

package env_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// testContext ends with the test or after two minutes.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func client(t *testing.T, cluster *env.Cluster) *kubernetes.Clientset {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

func TestThreeClustersAtOnce(t *testing.T) {
	began := time.Now()
	clusters := envtest.Clusters(t, env.ClusterOptions{Name: "a"}, env.ClusterOptions{Name: "b"}, env.ClusterOptions{Name: "c"})
	t.Logf("three clusters started in %s", time.Since(began).Round(time.Millisecond))
	addresses := map[string]bool{}
	for _, cluster := range clusters {
		addresses[cluster.URL] = true
		for range 2 { // stopping twice is allowed
			if err := cluster.Stop(); err != nil {
				t.Error(err)
			}
		}
		if listening(cluster.URL) {
			t.Errorf("%s still listens at %s", cluster.Name, cluster.URL)
		}
	}
	if len(addresses) != 3 {
		t.Errorf("got the addresses %v, want three", addresses)
	}
}

// listening says whether anybody accepts connections at a URL's address.
func listening(url string) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// bereftEnv makes this test's program start a cluster, print its URL and wait
// to be killed.
const bereftEnv = "FLEETBROKER_TEST_START_AND_WAIT"

func TestMain(m *testing.M) {
	if os.Getenv(bereftEnv) == "" {
		os.Exit(m.Run())
	}
	cluster, err := env.StartCluster(context.Background(), env.ClusterOptions{Name: "bereft", Dir: os.Getenv(bereftEnv), ControllerManager: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cluster.URL)
	select {}
}

// Servers die with whoever started them, even if it was killed.
func TestServersDieWithTheirParent(t *testing.T) {
	parent := exec.CommandContext(testContext(t), os.Args[0])
	parent.Env = append(os.Environ(), bereftEnv+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url := strings.TrimSpace(line)
	if err != nil || !listening(url) {
		t.Errorf("the cluster did not start: %q, %v", url, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Error("the parent ended by itself")
	}
	envtest.Eventually(t, "the servers to be gone", func(context.Context) bool { return !listening(url) })
}

func TestControllerManager(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "managed", ControllerManager: true})
	ctx, api := testContext(t), client(t, cluster)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	if _, err := api.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the default ServiceAccount", func(ctx context.Context) bool {
		_, err := api.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	owner, err := api.CoreV1().ConfigMaps(namespace.Name).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}}}
	if _, err := api.CoreV1().ConfigMaps(namespace.Name).Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := api.CoreV1().ConfigMaps(namespace.Name).Delete(ctx, owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the owned object to be collected", func(ctx context.Context) bool {
		_, err := api.CoreV1().ConfigMaps(namespace.Name).Get(ctx, owned.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if err := api.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the namespace to be gone", func(ctx context.Context) bool {
		_, err := api.CoreV1().Namespaces().Get(ctx, namespace.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestIdentitiesMeetRBAC(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "rbac"})
	ctx, admin := testContext(t), client(t, cluster)

	kubeconfig, err := cluster.KubeconfigFor("alice", "viewers")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	alice, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alice.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("a user without a role lists nodes: got %v, want forbidden", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admins-for-a-day"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "viewers"}},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the binding to count", func(ctx context.Context) bool {
		_, err := alice.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil
	})

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err = cluster.KubeconfigForServiceAccount(ctx, "default", "robot")
	if err != nil {
		t.Fatal(err)
	}
	if config, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	robot, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := robot.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("a ServiceAccount without a role lists nodes: got %v, want forbidden", err)
	}
}

// What a client has been answered is in the list of calls, and only that.
func TestCallsAreCounted(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "audited", Audit: true})
	config, err := cluster.ConfigFor("counted", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	if _, err := api.CoreV1().ConfigMaps("default").Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	watch, err := api.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()
	calls, err := cluster.Calls("counted")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, call := range calls {
		got = append(got, fmt.Sprint(call.Verb, " ", call.Resource, " ", call.Namespace, "/", call.Name, " ", call.Status))
	}
	if want := []string{"get configmaps default/none 404", "watch configmaps default/ 200"}; !slices.Equal(got, want) {
		t.Errorf("got the calls %q, want %q", got, want)
	}
	version, err := api.Discovery().ServerVersion()
	if err != nil || version.Major != "1" || version.Minor < "36" {
		t.Errorf("the server says that it is %v, %v", version, err)
	}
}

func TestOutages(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "outage"})
	ctx, api := testContext(t), client(t, cluster)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := api.CoreV1().ConfigMaps("default").Create(ctx, config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get := func(ctx context.Context) error {
		_, err := api.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		return err
	}

	if err := cluster.Pause(); err != nil {
		t.Fatal(err)
	}
	hasty, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	if err := get(hasty); hasty.Err() == nil {
		t.Errorf("a paused cluster answers: %v", err)
	}
	cancel()
	if err := cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := get(ctx); err != nil {
		t.Errorf("after resume: %v", err)
	}

	if err := cluster.StopServers(); err != nil {
		t.Fatal(err)
	}
	if err := get(ctx); err == nil {
		t.Error("a cluster that is down answers")
	}
	if err := cluster.StartServers(ctx); err != nil {
		t.Fatal(err)
	}
	if err := get(ctx); err != nil {
		t.Errorf("after restart: %v", err)
	}
}

// The isolation of tenants stands on admission policies that became v1 with
// Kubernetes 1.36: here only that both kinds are served and act.
func TestAdmissionPoliciesAct(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "policies"})
	ctx, api := testContext(t), client(t, cluster)
	match := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
	name := metav1.ObjectMeta{Name: "try.fleetbroker.io"}
	policies := api.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: match,
			Validations:      []admissionv1.Validation{{Expression: "object.metadata.name != 'forbidden'"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = policies.MutatingAdmissionPolicies().Create(ctx, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   match,
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: `Object{metadata: Object.metadata{labels: {"touched": "yes"}}}`,
				},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = policies.MutatingAdmissionPolicyBindings().Create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	envtest.Eventually(t, "the validating policy", func(ctx context.Context) bool {
		_, err := api.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "forbidden"}}, dryRun)
		return apierrors.IsInvalid(err)
	})
	envtest.Eventually(t, "the mutating policy", func(ctx context.Context) bool {
		got, err := api.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed"}}, dryRun)
		return err == nil && got.Labels["touched"] == "yes"
	})
}
