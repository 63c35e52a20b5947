//go:build e2e

package peering

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// pair is a consumer and a provider, with a client of each.
type pair struct {
	rome, paris     Side
	onRome, onParis client.Client
}

func newPair(t *testing.T) *pair {
	t.Helper()
	clusters := envtest.Clusters(t, env.ClusterOptions{Name: "rome"}, env.ClusterOptions{Name: "paris"})
	side := func(i int, namespace string) (Side, client.Client) {
		if err := env.InstallLiqoCRDs(t.Context(), clusters[i].Config); err != nil {
			t.Fatal(err)
		}
		s := Side{Name: clusters[i].Name, ID: "id-" + clusters[i].Name, Namespace: namespace, Config: func(context.Context) (*rest.Config, error) { return clusters[i].Config, nil }}
		c, _, err := s.client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s, c
	}
	p := &pair{}
	p.rome, p.onRome = side(0, "liqo-tenant-id-paris")
	p.paris, p.onParis = side(1, "liqo-tenant-id-rome")
	return p
}

func (p *pair) ensure(t *testing.T, now time.Time) State {
	t.Helper()
	s, err := Ensure(t.Context(), p.rome, p.paris, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// secrets are the identities on the consumer.
func (p *pair) secrets(t *testing.T) []corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	if err := p.onRome.List(t.Context(), &list, client.InNamespace(p.rome.Namespace), client.MatchingLabels{labelRemoteCluster: "id-paris"}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// admitted says whether the kubeconfig in a Secret is let in by the provider,
// and for what it is not.
func admitted(t *testing.T, s corev1.Secret) error {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data[kubeconfigInSecret])
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := Side{Config: func(context.Context) (*rest.Config, error) { return config, nil }}.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.List(t.Context(), &authv1beta1.ResourceSliceList{}, client.InNamespace("liqo-tenant-id-rome"))
}

func TestMain(m *testing.M) {
	if err := env.BuildTools(context.Background(), os.Stderr); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestPeering(t *testing.T) {
	p := newPair(t)
	now := time.Now()
	first := p.ensure(t, now)
	if first.Foreign || !first.Renew.After(now.Add(24*time.Hour)) {
		t.Errorf("made: %+v", first)
	}
	tenant := &authv1beta1.Tenant{}
	if err := p.onParis.Get(t.Context(), client.ObjectKey{Namespace: p.paris.Namespace, Name: "id-rome"}, tenant); err != nil {
		t.Fatal(err)
	}
	if tenant.Spec.AuthzPolicy == nil || *tenant.Spec.AuthzPolicy != authv1beta1.TolerateNoHandshake || tenant.Spec.ClusterID != "id-rome" {
		t.Errorf("the Tenant is %+v", tenant.Spec)
	}
	made := p.secrets(t)
	if len(made) != 1 {
		t.Fatalf("there are %d Secrets", len(made))
	}
	// The ClusterRole is Liqo's chart's, which is not here: known, and allowed nothing.
	if err := admitted(t, made[0]); err == nil || !strings.Contains(err.Error(), "system:serviceaccount:liqo-tenant-id-rome:liqo-consumer-id-rome") {
		t.Errorf("the provider says %v", err)
	}

	// Again: nothing changes.
	if again := p.ensure(t, now.Add(time.Hour)); again != first {
		t.Errorf("again: %+v, was %+v", again, first)
	}
	if same := p.secrets(t); same[0].ResourceVersion != made[0].ResourceVersion {
		t.Error("the Secret was written again")
	}
	// The provider's condition of the Tenant stays the provider's.
	if err := p.onParis.Patch(t.Context(), tenant, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"tenantCondition":"Cordoned"}}`))); err != nil {
		t.Fatal(err)
	}
	p.ensure(t, now)
	if err := p.onParis.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil || tenant.Spec.TenantCondition != authv1beta1.TenantConditionCordoned {
		t.Errorf("the Tenant is %s, %v", tenant.Spec.TenantCondition, err)
	}

	// When its time has come the token is another one.
	p.ensure(t, first.Renew)
	renewed := p.secrets(t)
	if len(renewed) != 1 || slices.Equal(renewed[0].Data[kubeconfigInSecret], made[0].Data[kubeconfigInSecret]) {
		t.Error("the token was not renewed")
	}
	if was, now := certificate(t, made[0]), certificate(t, renewed[0]); len(now) == 0 || slices.Equal(was, now) {
		t.Error("the certificate by which Liqo tells credentials apart is the same")
	}
	if err := admitted(t, renewed[0]); err == nil || !strings.Contains(err.Error(), "system:serviceaccount:liqo-tenant-id-rome:liqo-consumer-id-rome") {
		t.Errorf("renewed, the provider says %v", err)
	}
	// A ServiceAccount that was made anew knows no token of the old one.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.paris.Namespace, Name: "liqo-consumer-id-rome"}}
	if err := p.onParis.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	p.ensure(t, now)
	after := p.secrets(t)
	if err := admitted(t, after[0]); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("with the new account's token the provider says %v", err)
	}

	// Undone, the token ends at once, and undoing again does nothing.
	for range 2 {
		if err := Undo(t.Context(), p.rome, p.paris); err != nil {
			t.Fatal(err)
		}
	}
	if left := p.secrets(t); len(left) != 0 {
		t.Errorf("%d Secrets are left", len(left))
	}
	envtest.Eventually(t, "the end of the token", func(context.Context) bool {
		return apierrors.IsUnauthorized(admitted(t, after[0]))
	})
}

// A peering of somebody else's is used as it is, with no way to the provider.
func TestAForeignPeeringIsLeftAlone(t *testing.T) {
	p := newPair(t)
	p.paris.Config = func(context.Context) (*rest.Config, error) { t.Error("the provider was asked"); return nil, nil }
	if err := p.onRome.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.rome.Namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := p.onRome.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "theirs", Namespace: p.rome.Namespace, Labels: map[string]string{labelIdentityType: controlPlane, labelRemoteCluster: "id-paris"},
	}}); err != nil {
		t.Fatal(err)
	}
	if s := p.ensure(t, time.Now()); !s.Foreign {
		t.Errorf("got %+v", s)
	}
	if err := Undo(t.Context(), p.rome, p.paris); err != nil {
		t.Error(err)
	}
	if left := p.secrets(t); len(left) != 1 {
		t.Errorf("%d Secrets are left", len(left))
	}
}

// certificate is that of a Secret's kubeconfig.
func certificate(t *testing.T, s corev1.Secret) []byte {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data[kubeconfigInSecret])
	if err != nil {
		t.Fatal(err)
	}
	return config.CertData
}
