package liqo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

// chart is what helm makes of Liqo's chart: objects to apply and Deployments
// to run.
type chart struct {
	objects     []*unstructured.Unstructured
	deployments map[string]*appsv1.Deployment
}

// render runs helm on the chart that is part of Liqo's module.
func render(ctx context.Context, o Options, dir string, webhook int) (*chart, error) {
	helm, err := tools.Find(ctx, "helm", o.Progress)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, helm, "template", "liqo", dir, "--namespace", o.Namespace, "--no-hooks",
		"--set", strings.Join([]string{
			"discovery.config.clusterID=" + o.ClusterID,
			"networking.enabled=false", "proxy.enabled=false", "telemetry.enabled=false",
			"apiServer.address=" + o.Cluster.URL, "tag=" + tools.LiqoVersion,
			"webhook.port=" + strconv.Itoa(webhook),
			// Its certificate would be asked for by a CSR that nobody approves here.
			"virtualKubelet.extra.args={--certificate-type=self-signed}",
		}, ","))
	var said bytes.Buffer
	cmd.Stderr = &said
	// helm would like to write into the home directory.
	cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+o.Dir, "HELM_CONFIG_HOME="+o.Dir, "HELM_DATA_HOME="+o.Dir)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("render Liqo's chart: %w: %s", err, said.Bytes())
	}
	return parse(out)
}

// parse sorts what helm prints. What runs nothing here (jobs, aggregated APIs)
// and what belongs to parts that are left out is dropped.
func parse(text []byte) (*chart, error) {
	c := &chart{deployments: map[string]*appsv1.Deployment{}}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read Liqo's chart: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		switch u.GetKind() {
		case "Deployment":
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
				return nil, fmt.Errorf("read Liqo's chart: %w", err)
			}
			c.deployments[d.Name] = d
		case "APIService", "Job", "CronJob", "DaemonSet", "Network", "FirewallConfiguration":
		default:
			c.objects = append(c.objects, u)
		}
	}
}

// apply brings the objects onto the cluster, namespaced ones into Liqo's
// namespace.
func (c *chart) apply(ctx context.Context, cl client.Client, namespace string) error {
	for _, o := range c.objects {
		namespaced, err := cl.IsObjectNamespaced(o)
		if err != nil {
			return fmt.Errorf("apply Liqo's chart: %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if namespaced && o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		if err := cl.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("helm"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply Liqo's chart: %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
