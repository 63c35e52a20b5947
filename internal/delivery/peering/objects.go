package peering

import (
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxName is what Kubernetes takes of a name, in bytes.
const maxName = 253

// account is the name of the ServiceAccount for the consumer.
func (e *ends) account() string { return v1alpha1.CutName(serviceAccountStart+e.consumer.ID, maxName) }

// providerObjects are what the provider has for the consumer, in the order in
// which they are made.
func (e *ends) providerObjects() []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: e.provider.Namespace, Labels: map[string]string{labelManagedBy: manager}}
	}
	policy := authv1beta1.TolerateNoHandshake
	tenant := &authv1beta1.Tenant{
		TypeMeta:   metav1.TypeMeta{APIVersion: authv1beta1.GroupVersion.String(), Kind: authv1beta1.TenantKind},
		ObjectMeta: meta(e.consumer.ID),
		// Its condition is the provider's own business: Active by default.
		Spec: authv1beta1.TenantSpec{ClusterID: liqov1beta1.ClusterID(e.consumer.ID), AuthzPolicy: &policy},
	}
	tenant.Labels[labelRemoteCluster] = e.consumer.ID
	return []client.Object{
		tenantNamespace(e.provider.Namespace, e.consumer.ID),
		&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: meta(e.account()),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: meta(e.account()),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: remoteControlPlane},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: e.account(), Namespace: e.provider.Namespace}},
		},
		tenant,
	}
}

// tenantNamespace is where Liqo keeps what concerns another cluster.
func tenantNamespace(name, other string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelTenantSpace: "true", labelRemoteCluster: other}},
	}
}

// unstructuredOf keeps what is stated: an apply must not own a status or a
// creation time of nothing.
func unstructuredOf(object map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object}
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if spec, ok := u.Object["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(u.Object, "spec")
	}
	return u
}
