package cli

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/examined"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/internal/doctor/hub"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

type doctorOptions struct {
	worldFlags
	streams     Streams
	name        string
	kubeconfigs access.Kubeconfigs
	witness     string
	hub         hub.Flags
	output      string
}

// doctorTimeout bounds what one cluster may cost.
const doctorTimeout = 20 * time.Second

var doctorForms = []string{"text", "wide", "json", "yaml"}

func newCmdDoctor(s Streams) *cobra.Command {
	o := doctorOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "doctor [CLUSTER|CONTRACT]",
		Short: "Find out why contracts are not usable, and what to do",
		Long: `Check every link between an intent's file and its pods, on both clusters: the
contract, its manifests in git, the ways to the clusters, what is installed
there, the peering, the admission policies, slice, virtual node, Node, offloaded
namespaces, pods and the provider's side. Each trouble is named with its cause
and its remedy. Without an argument all held contracts are checked, and how full
etcd of the cluster with the market's objects is, with a cluster's name those
that it gives or gets. Nothing is changed.`,
		Example: `  fleetbroker doctor -C fleet --kubeconfigs-dir ~/kubeconfigs
  fleetbroker doctor rome --kubeconfigs-dir ~/kubeconfigs
  fleetbroker doctor vision-llm-finetune-0-k3f9q2ab --kubeconfigs-dir ~/kubeconfigs -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.name = args[0]
			}
			if err := oneOf("output", o.output, doctorForms...); err != nil {
				return err
			}
			return doctorRun(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	o.kubeconfigs.Register(cmd.Flags(), "directory with <cluster>.kubeconfig files of the clusters to look at")
	cmd.Flags().StringVar(&o.witness, "witness", "", "file of audit export, whose head the ledger must hold")
	o.hub.Register(cmd.Flags())
	outputFlag(cmd, &o.output, doctorForms...)
	return cmd
}

func doctorRun(ctx context.Context, o doctorOptions) error {
	src, err := o.open(ctx, nil)
	if err != nil {
		return err
	}
	in, err := o.gather(ctx, src, o.streams)
	if err != nil {
		return err
	}
	contracts, clusters, err := in.patients(o.name)
	if err != nil {
		return err
	}
	seen := in.visit(ctx, clusters, o.kubeconfigs)
	out := examined.Examination{Clusters: []examined.Cluster{}, Contracts: []doctor.Diagnosis{}, Ledger: []examined.Trouble{}}
	if o.name == "" || o.witness != "" {
		findings, notes, err := in.ledgerFindings(ctx, o.retyped(false), o.witness)
		if err != nil {
			return err
		}
		out.Ledger, out.Notes = append(out.Ledger, findings...), notes
	}
	if o.name == "" {
		findings, note, err := o.hub.Look(ctx)
		if err != nil {
			return usagef("%v", err)
		}
		if out.Store = findings; note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	if note := doctor.DeliveryNote(in.fleet.Clusters, in.fleet.Policy.Defaults.Delivery); note != "" && o.name == "" {
		out.Notes = append(out.Notes, note)
	}
	out.Notes = append(out.Notes, append(doctor.LiqoNotes(seen), doctor.NodeNotes(seen, in.fleet.Flavors)...)...)
	for _, name := range sortedNames(clusters) {
		f := doctor.DiagnoseCluster(seen[name], in.fleet.Clusters[name].Spec.Roles)
		if says := seen[name].Admission(); says != "" && in.fleet.Clusters[name].HasRole(v1alpha1.RoleConsumer) {
			out.Notes = append(out.Notes, says)
		}
		out.Clusters = append(out.Clusters, examined.Cluster{Cluster: name, Findings: append([]doctor.Finding{}, f...)})
	}
	for _, c := range contracts {
		p, err := in.picture(c, seen)
		if err != nil {
			return err
		}
		out.Contracts = append(out.Contracts, doctor.Diagnose(p))
	}
	return printExamination(o, &out)
}

// patients are the held contracts that a name means, and the clusters to look
// at for them.
func (g *gathered) patients(name string) ([]*v1alpha1.Contract, map[string]bool, error) {
	clusters := map[string]bool{}
	if g.fleet.Clusters[name] != nil {
		clusters[name] = true
	}
	var list []*v1alpha1.Contract
	for c := range g.ledger.Contracts() {
		s := &c.Spec
		if !c.Status.Phase.Held() || name != "" && name != c.Metadata.Name && name != s.Consumer && name != s.Provider {
			continue
		}
		list = append(list, c)
		for _, cluster := range []string{s.Consumer, s.Provider} {
			if g.fleet.Clusters[cluster] != nil {
				clusters[cluster] = true
			}
		}
	}
	if name != "" && len(list) == 0 && len(clusters) == 0 {
		return nil, nil, hinted(fmt.Errorf("there is no cluster and no held contract %q", name), "list them: fleetbroker get clusters, fleetbroker get contracts")
	}
	if name == "" {
		for cluster := range g.fleet.Clusters {
			clusters[cluster] = true
		}
	}
	return list, clusters, nil
}

// visit looks at clusters, all at once.
func (g *gathered) visit(ctx context.Context, clusters map[string]bool, ways access.Kubeconfigs) map[string]*doctor.Cluster {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	seen := make(map[string]*doctor.Cluster, len(clusters))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name := range clusters {
		c := g.fleet.Clusters[name]
		wg.Go(func() {
			got := doctor.Gather(ctx, c, func(ctx context.Context) (*rest.Config, error) {
				return ways.RESTConfig(ctx, c)
			})
			mu.Lock()
			defer mu.Unlock()
			seen[name] = got
		})
	}
	wg.Wait()
	return seen
}

// picture joins what is known of a contract.
func (g *gathered) picture(c *v1alpha1.Contract, seen map[string]*doctor.Cluster) (*doctor.Picture, error) {
	clusters, s := g.fleet.Clusters, &c.Spec
	p := &doctor.Picture{
		Now: g.now.Time, Contract: c, Consumer: seen[s.Consumer], Provider: seen[s.Provider],
		ConsumerID: manifests.LiqoID(clusters, s.Consumer), ProviderID: manifests.LiqoID(clusters, s.Provider),
		OnConsumer: manifests.TenantNamespace(clusters, s.Consumer, s.Provider), OnProvider: manifests.TenantNamespace(clusters, s.Provider, s.Consumer),
		Auto: g.fleet.Policy.Peering.Auto == nil || *g.fleet.Policy.Peering.Auto,
	}
	for _, side := range []struct {
		name string
		of   **doctor.Cluster
	}{{s.Consumer, &p.Consumer}, {s.Provider, &p.Provider}} {
		if c := clusters[side.name]; c != nil && c.Spec.Liqo.Networking {
			p.OnNetwork = append(p.OnNetwork, side.name)
		} else {
			p.OffNetwork = append(p.OffNetwork, side.name)
		}
		if *side.of == nil {
			*side.of = &doctor.Cluster{Name: side.name, NoAccess: "there is no clusters/" + side.name + ".yaml"}
		}
	}
	if it := g.fleet.Intent(c.Metadata.Namespace, s.Intent.Name); it != nil {
		p.Wanted, p.Enforcement = true, it.Spec.Enforcement
	}
	for _, f := range g.fleet.Frozen {
		if freezes(f, c) {
			p.Frozen = f.Why
		}
	}
	// Warm pools have no intent's file.
	p.Wanted = p.Wanted || c.Metadata.Namespace == v1alpha1.FleetTenant
	t, found, err := g.src.ledger(g.fleet.Policy.WriteBack.Branch)
	if err != nil || !found {
		return p, err
	}
	dir, err := t.Sub(path.Dir(manifests.SliceFile(c)))
	if err != nil {
		return nil, fmt.Errorf("look for the manifests of %s: %w", c.Metadata.Name, err)
	}
	_, err = dir.ReadFile(path.Base(manifests.SliceFile(c)), 1<<20)
	p.Manifest = err == nil
	return p, nil
}

// freezes reports whether what cannot be read had named a contract's intent.
func freezes(f model.Freeze, c *v1alpha1.Contract) bool {
	in := c.Spec.Intent
	switch {
	case f.Cluster != "":
		return f.Cluster == c.Spec.Consumer || f.Cluster == c.Spec.Provider
	case f.Intent != "":
		return f.Tenant == c.Metadata.Namespace && f.Intent == in.Name
	case f.Path == "/":
		return true
	case strings.HasSuffix(f.Path, "/"):
		return strings.HasPrefix(in.Path, f.Path)
	}
	return f.Path == in.Path
}

// printExamination writes what was found, and ends the command with 1 if there is any.
func printExamination(o doctorOptions, e *examined.Examination) error {
	err := printOutcome(o.streams.Out, o.output, e, e.Text(o.output == "wide"))
	if err == nil && e.Found() > 0 {
		err = errFindings
	}
	return err
}
