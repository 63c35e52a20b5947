package doctor

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// source is where objects of a kind are found.
type source struct {
	gvr    schema.GroupVersionResource
	labels string
	// consumer and provider: on which clusters the kind is looked at.
	consumer, provider bool
	// trim leaves of an object what may be looked at.
	trim func(*unstructured.Unstructured)
}

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

const admission = "admissionregistration.k8s.io"

var sources = map[Kind]source{
	Slices:       {gvr: gvr("authentication.liqo.io", "v1beta1", "resourceslices"), consumer: true, provider: true},
	Tenants:      {gvr: gvr("authentication.liqo.io", "v1beta1", "tenants"), provider: true},
	VirtualNodes: {gvr: gvr("offloading.liqo.io", "v1beta1", "virtualnodes"), consumer: true},
	Offloadings:  {gvr: gvr("offloading.liqo.io", "v1beta1", "namespaceoffloadings"), consumer: true},
	Quotas:       {gvr: gvr("offloading.liqo.io", "v1beta1", "quotas"), provider: true},
	Foreign:      {gvr: gvr("core.liqo.io", "v1beta1", "foreignclusters"), consumer: true},
	Nodes:        {gvr: gvr("", "v1", "nodes"), consumer: true, provider: true},
	Namespaces:   {gvr: gvr("", "v1", "namespaces"), consumer: true, provider: true},
	Pods:         {gvr: gvr("", "v1", "pods"), consumer: true},
	Budgets:      {gvr: gvr("policy", "v1", "poddisruptionbudgets"), consumer: true},
	DaemonSets:   {gvr: gvr("apps", "v1", "daemonsets"), consumer: true},

	Validating:         {gvr: gvr(admission, "v1", "validatingadmissionpolicies"), consumer: true, provider: true},
	ValidatingBindings: {gvr: gvr(admission, "v1", "validatingadmissionpolicybindings"), consumer: true, provider: true},
	Mutating:           {gvr: gvr(admission, "v1", "mutatingadmissionpolicies"), consumer: true},
	MutatingBindings:   {gvr: gvr(admission, "v1", "mutatingadmissionpolicybindings"), consumer: true},

	Webhooks:    {gvr: gvr(admission, "v1", "mutatingwebhookconfigurations"), consumer: true},
	Deployments: {gvr: gvr("apps", "v1", "deployments"), labels: "app.kubernetes.io/part-of=liqo,app.kubernetes.io/component=controller-manager", consumer: true, provider: true, trim: withoutSpec},

	Identities: {gvr: gvr("", "v1", "secrets"), labels: "liqo.io/identity-type=ControlPlane", consumer: true, trim: withoutData},
}

// withoutData takes a Secret's content out at once.
func withoutData(u *unstructured.Unstructured) {
	delete(u.Object, "data")
	delete(u.Object, "stringData")
}

// withoutSpec leaves an object's metadata.
func withoutSpec(u *unstructured.Unstructured) {
	delete(u.Object, "spec")
	delete(u.Object, "status")
}

// pageSize is how many objects a call answers at most.
const pageSize = 500

// Gather reads what a cluster shows, in the roles and the form of admission of its file. config says how it is
// reached, or why it is not. ctx bounds all of it; what a cluster does not
// answer is part of the picture and no error.
func Gather(ctx context.Context, of *v1alpha1.Cluster, config func(context.Context) (*rest.Config, error)) *Cluster {
	form, liqo := of.AdmissionForm(), cmp.Or(of.Spec.Liqo.Namespace, "liqo")
	c := &Cluster{Name: of.Metadata.Name, Form: form, Unread: map[Kind]string{}, Objects: map[Kind][]unstructured.Unstructured{}}
	way, err := config(ctx)
	if err != nil {
		c.NoAccess = err.Error()
		return c
	}
	way = rest.CopyConfig(way)
	way.UserAgent = "fleetbroker-doctor"
	way.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(way)
	if err != nil {
		c.NoAccess = err.Error()
		return c
	}
	consumer, provider := of.HasRole(v1alpha1.RoleConsumer), of.HasRole(v1alpha1.RoleProvider)
	c.look(ctx, way)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, k := range slices.Sorted(maps.Keys(sources)) {
		from := sources[k]
		if k == Webhooks && form != v1alpha1.AdmissionWebhook || (k == Mutating || k == MutatingBindings) && len(c.Serves) == 0 {
			continue // no others' business, or nothing to list
		}
		if len(c.Serves) > 0 && (k == Mutating || k == MutatingBindings) {
			from.gvr.Version = c.Serves[0]
		}
		if !(from.consumer && consumer || from.provider && provider) {
			continue
		}
		wg.Go(func() {
			kind := client.Resource(from.gvr)
			list, err := listAll(ctx, kind, from)
			if k == Deployments && apierrors.IsForbidden(err) { // the daemon's account may list Liqo's at most
				list, err = listAll(ctx, kind.Namespace(liqo), from)
			}
			mu.Lock()
			defer mu.Unlock()
			c.put(k, list, err)
		})
	}
	wg.Wait()
	return c
}

// put files what listing a kind has given.
func (c *Cluster) put(k Kind, list []unstructured.Unstructured, err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		c.Objects[k] = list
	case apierrors.IsNotFound(err):
		c.NotServed = append(c.NotServed, k)
		slices.Sort(c.NotServed)
	case k == Identities && apierrors.IsForbidden(err):
		// The daemon's own account may read Secrets in Liqo's namespaces alone.
	case k == Deployments && apierrors.IsForbidden(err):
		c.LiqoHidden = true
	case errors.As(err, &status):
		c.Unread[k] = string(status.Status().Reason)
	default:
		c.Unreachable = err.Error()
	}
}

func listAll(ctx context.Context, client dynamic.ResourceInterface, from source) ([]unstructured.Unstructured, error) {
	out := []unstructured.Unstructured{}
	options := metav1.ListOptions{LabelSelector: from.labels, Limit: pageSize}
	for {
		page, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if from.trim != nil {
				from.trim(&page.Items[i])
			}
			page.Items[i].SetManagedFields(nil)
		}
		out = append(out, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}
