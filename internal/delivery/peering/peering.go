package peering

import (
	"context"
	"fmt"
	"slices"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
)

// Life is how long a token is asked for; an API server may give less.
const Life = 7 * 24 * time.Hour

// Annotations of the Secret on the consumer.
const (
	// annotationRenew is when the token in it is renewed, RFC 3339.
	annotationRenew = v1alpha1.Group + "/renew-after"
	// annotationAccount is the UID of the ServiceAccount that the token is of.
	annotationAccount = v1alpha1.Group + "/account"
)

// Labels and annotations by which Liqo v1.2.0 finds an identity
// (pkg/consts/authentication.go).
const (
	labelIdentityType   = "liqo.io/identity-type"
	labelRemoteCluster  = "liqo.io/remote-cluster-id"
	labelTenantSpace    = "liqo.io/tenant-namespace"
	annotationRemote    = "liqo.io/remote-tenant-namespace"
	controlPlane        = "ControlPlane"
	remoteControlPlane  = "liqo-remote-controlplane" // ClusterRole of Liqo's chart
	labelManagedBy      = "app.kubernetes.io/managed-by"
	manager             = "fleetbroker"
	fieldOwner          = client.FieldOwner("fleetbroker-peering")
	kubeconfigInSecret  = "kubeconfig"
	secretPrefix        = "kubeconfig-controlplane-"
	serviceAccountStart = "liqo-consumer-"
)

// Side is one of the two clusters.
type Side struct {
	// Name of the cluster in the fleet, for messages.
	Name string
	// ID is Liqo's id of it.
	ID string
	// Namespace on it in which Liqo keeps what concerns the other side.
	Namespace string
	// Config reaches its API server. The provider's is asked only when something
	// is to be done there.
	Config func(context.Context) (*rest.Config, error)
}

// client makes a client of the cluster.
func (s Side) client(ctx context.Context) (client.Client, *rest.Config, error) {
	config, err := s.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("reach %s: %w", s.Name, err)
	}
	return c, config, nil
}

// State is how a peering stands.
type State struct {
	// Foreign: somebody else made it, and it is left alone.
	Foreign bool
	// Renew is when Ensure has to be called again; zero when it is foreign.
	Renew time.Time
}

// newScheme knows the kinds that a peering consists of.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, authv1beta1.AddToScheme(s)
}

// ends are the two sides with their clients.
type ends struct {
	consumer, provider     Side
	onConsumer, onProvider client.Client
	// reach is how the provider is reached.
	reach *rest.Config
}

// Ensure makes the peering, or renews it, or finds it as it should be. now is
// compared with the ends of credentials. A peering of somebody else's needs no
// way to the provider.
func Ensure(ctx context.Context, consumer, provider Side, now time.Time) (State, error) {
	state, err := ensure(ctx, consumer, provider, now)
	if err != nil {
		return State{}, fmt.Errorf("peer %s with %s: %w", consumer.Name, provider.Name, err)
	}
	return state, nil
}

func ensure(ctx context.Context, consumer, provider Side, now time.Time) (State, error) {
	e := &ends{consumer: consumer, provider: provider}
	secret, foreign, err := e.identity(ctx)
	if err != nil || foreign {
		return State{Foreign: foreign}, err
	}
	if e.onProvider, e.reach, err = provider.client(ctx); err != nil {
		return State{}, err
	}
	for _, o := range e.providerObjects() {
		if err := apply(ctx, e.onProvider, o); err != nil {
			return State{}, fmt.Errorf("on %s: %w", provider.Name, err)
		}
	}
	account := &corev1.ServiceAccount{}
	if err := e.onProvider.Get(ctx, client.ObjectKey{Namespace: provider.Namespace, Name: e.account()}, account); err != nil {
		return State{}, fmt.Errorf("on %s: %w", provider.Name, err)
	}
	if renew, good := e.stillGood(secret, account, now); good {
		return State{Renew: renew}, nil
	}
	renew, err := e.issue(ctx, account, now)
	return State{Renew: renew}, err
}

// Undo ends a peering that Ensure made, and does nothing where there is none, somebody
// else made it, or there are slices in it, whoever's.
func Undo(ctx context.Context, consumer, provider Side) error {
	if err := undo(ctx, consumer, provider); err != nil {
		return fmt.Errorf("end the peering of %s with %s: %w", consumer.Name, provider.Name, err)
	}
	return nil
}

// undo removes the Secret last: while it is there, somebody knows that there is
// something to undo.
func undo(ctx context.Context, consumer, provider Side) error {
	e := &ends{consumer: consumer, provider: provider}
	secret, foreign, err := e.identity(ctx)
	if err != nil || foreign || secret == nil {
		return err
	}
	// Another fleet may have contracts of the same two clusters.
	// As they are: a quantity that a cluster writes may take days to read.
	used := &unstructured.UnstructuredList{}
	used.SetGroupVersionKind(authv1beta1.GroupVersion.WithKind("ResourceSliceList"))
	if err := e.onConsumer.List(ctx, used, client.InNamespace(consumer.Namespace)); err != nil {
		return fmt.Errorf("on %s: see whether it is used: %w", consumer.Name, err)
	}
	if len(used.Items) > 0 {
		return nil
	}
	if e.onProvider, e.reach, err = provider.client(ctx); err != nil {
		return err
	}
	for _, o := range slices.Backward(e.providerObjects()[1:]) { // the first is the Namespace, which stays
		if err := client.IgnoreNotFound(e.onProvider.Delete(ctx, o)); err != nil {
			return fmt.Errorf("on %s: %w", provider.Name, err)
		}
	}
	if err := client.IgnoreNotFound(e.onConsumer.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("on %s: %w", consumer.Name, err)
	}
	return nil
}

// identity finds the Secret from which Liqo on the consumer starts, nil when
// there is none, and says whether it is somebody else's.
func (e *ends) identity(ctx context.Context) (own *corev1.Secret, foreign bool, err error) {
	if e.onConsumer, _, err = e.consumer.client(ctx); err != nil {
		return nil, false, err
	}
	var list corev1.SecretList
	err = e.onConsumer.List(ctx, &list, client.InNamespace(e.consumer.Namespace),
		client.MatchingLabels{labelIdentityType: controlPlane, labelRemoteCluster: e.provider.ID})
	if err != nil {
		return nil, false, fmt.Errorf("on %s: %w", e.consumer.Name, err)
	}
	for i := range list.Items {
		if list.Items[i].Labels[labelManagedBy] != manager {
			return nil, true, nil
		}
		own = &list.Items[i]
	}
	return own, false, nil
}

// stillGood reports whether the Secret need not be written, and until when.
func (e *ends) stillGood(secret *corev1.Secret, account *corev1.ServiceAccount, now time.Time) (time.Time, bool) {
	if secret == nil || secret.Annotations[annotationAccount] != string(account.UID) || secret.Annotations[annotationRemote] != e.provider.Namespace {
		return time.Time{}, false
	}
	renew, err := time.Parse(time.RFC3339, secret.Annotations[annotationRenew])
	if err != nil || !now.Before(renew) {
		return time.Time{}, false
	}
	// The Secret is the consumer's to write: a file that it names would be read here.
	config, err := access.SafeRESTConfig(secret.Data[kubeconfigInSecret])
	if err != nil || config.Host != e.reach.Host || string(config.CAData) != string(e.reach.CAData) {
		return time.Time{}, false
	}
	return renew, true
}

// issue has the provider issue a token and lays it on the consumer.
func (e *ends) issue(ctx context.Context, account *corev1.ServiceAccount, now time.Time) (time.Time, error) {
	seconds := int64(Life / time.Second)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := e.onProvider.SubResource("token").Create(ctx, account, token); err != nil {
		return time.Time{}, fmt.Errorf("ask %s for a token: %w", e.provider.Name, err)
	}
	kubeconfig, err := e.kubeconfig(token.Status.Token)
	if err != nil {
		return time.Time{}, err
	}
	// Two thirds of what was given, by the giver's word.
	renew := now.Add(token.Status.ExpirationTimestamp.Sub(now) * 2 / 3).UTC().Truncate(time.Second)
	namespace := tenantNamespace(e.consumer.Namespace, e.provider.ID)
	if err := apply(ctx, e.onConsumer, namespace); err != nil {
		return time.Time{}, fmt.Errorf("on %s: %w", e.consumer.Name, err)
	}
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.CutName(secretPrefix+e.provider.ID, maxName), Namespace: e.consumer.Namespace,
			Labels: map[string]string{labelManagedBy: manager, labelIdentityType: controlPlane, labelRemoteCluster: e.provider.ID},
			Annotations: map[string]string{
				annotationRemote: e.provider.Namespace, annotationAccount: string(account.UID), annotationRenew: renew.Format(time.RFC3339),
			},
		},
		Data: map[string][]byte{kubeconfigInSecret: kubeconfig},
	}
	if err := apply(ctx, e.onConsumer, secret); err != nil {
		return time.Time{}, fmt.Errorf("on %s: %w", e.consumer.Name, err)
	}
	return renew, nil
}

// kubeconfig is how the consumer reaches the provider: as we do, with the
// token. The certificate beside it proves nothing and is trusted by nobody: an
// API server takes the token where it does not know a certificate. But Liqo
// v1.2.0 takes over another credential only where the certificate is another
// (apiserverchecker.go of its ForeignCluster controller), and would go on
// checking the provider with a token that has ended, until it gives the Node up.
func (e *ends) kubeconfig(token string) ([]byte, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("fleetbroker", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[e.provider.ID] = &clientcmdapi.Cluster{
		Server: e.reach.Host, CertificateAuthorityData: e.reach.CAData, TLSServerName: e.reach.ServerName,
	}
	config.AuthInfos[e.consumer.ID] = &clientcmdapi.AuthInfo{Token: token, ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[e.provider.ID] = &clientcmdapi.Context{Cluster: e.provider.ID, AuthInfo: e.consumer.ID, Namespace: e.provider.Namespace}
	config.CurrentContext = e.provider.ID
	return clientcmd.Write(*config)
}

// apply is a server-side apply of what the caller states of an object.
func apply(ctx context.Context, c client.Client, o client.Object) error {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	applied := unstructuredOf(u)
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), fieldOwner, client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("apply %s %s: %w (is Liqo installed there?)", applied.GetKind(), applied.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", applied.GetKind(), applied.GetName(), err)
	}
	return nil
}
