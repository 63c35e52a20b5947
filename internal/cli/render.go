package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

type renderOptions struct {
	sourceFlags
	streams  Streams
	args     []string
	consumer string
	output   string
}

func newCmdRender(s Streams) *cobra.Command {
	o := renderOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "render [DIR|URL]",
		Short: "Print the manifests of the contracts",
		Long: `Render the Kubernetes objects of all held contracts of the ledger, as the daemon
commits them under manifests/, and print them as one YAML stream, in which each
document begins with its path, or as one List in JSON.`,
		Example: `  fleetbroker render
  fleetbroker render --consumer rome | kubectl --context rome diff -f -`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			return renderRun(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&o.consumer, "consumer", "", "only what belongs on this cluster")
	checkedOutput(cmd, &o.output, "yaml", "json")
	return cmd
}

func renderRun(ctx context.Context, o renderOptions) error {
	src, err := o.open(ctx, o.args)
	if err != nil {
		return err
	}
	f, err := src.readFleet(ctx)
	if err != nil {
		return err
	}
	if o.consumer != "" && f.Clusters[o.consumer] == nil {
		return hinted(fmt.Errorf("there is no cluster %q", o.consumer), "list them: fleetbroker get clusters")
	}
	led, err := readLedger(ctx, src, f, o.streams)
	if err != nil {
		return err
	}
	facts := &manifests.Facts{Clusters: f.Delivered(), Fleet: src.root.ID()}
	out, err := facts.All(manifests.NewIndex(slices.Collect(led.Contracts())))
	if err != nil {
		return fmt.Errorf("render the manifests: %w", err)
	}
	for _, p := range out.Problems {
		fmt.Fprintf(o.streams.Err, "fleetbroker: %s\n", p)
	}
	list := objectList{APIVersion: "v1", Kind: "List", Items: []map[string]any{}}
	for _, consumer := range consumersOf(out.Files) {
		if o.consumer != "" && consumer != o.consumer {
			continue
		}
		files, problem, err := overlaid(src.inputs, consumer, out.Files)
		if err != nil {
			return err
		}
		if problem != "" {
			fmt.Fprintf(o.streams.Err, "fleetbroker: %s\n", problem)
		}
		if o.output == "json" {
			err = list.add(files)
		} else {
			err = printManifests(o.streams.Out, consumer, files)
		}
		if err != nil {
			return err
		}
	}
	if o.output == "json" {
		return escape.WriteJSON(o.streams.Out, list)
	}
	return nil
}

// objectList are objects as kubectl takes them.
type objectList struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []map[string]any `json:"items"`
}

// add adds the objects of a consumer's files, in the order of their paths.
func (l *objectList) add(files map[string][]byte) error {
	for _, name := range sortedNames(files) {
		if path.Base(name) == "kustomization.yaml" {
			continue
		}
		for d := yaml.NewYAMLToJSONDecoder(bytes.NewReader(files[name])); ; {
			var object map[string]any
			err := d.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if object != nil {
				l.Items = append(l.Items, object)
			}
		}
	}
	return nil
}

// consumersOf are the clusters that files under manifests/ are for.
func consumersOf(files map[string][]byte) []string {
	seen := map[string]bool{}
	for name := range files {
		if parts := strings.SplitN(name, "/", 3); len(parts) == 3 {
			seen[parts[1]] = true
		}
	}
	return sortedNames(seen)
}

// overlaid is a consumer's files by their path below manifests/<consumer>, with
// the platform team's overlay as the daemon applies it.
func overlaid(inputs tree.Tree, consumer string, all map[string][]byte) (files map[string][]byte, problem string, err error) {
	rendered := map[string][]byte{}
	for name, content := range all {
		if rest, ok := strings.CutPrefix(name, manifests.Dir(consumer)+"/"); ok {
			rendered[rest] = content
		}
	}
	overlay, err := manifests.OverlayOf(inputs, consumer)
	if err != nil {
		return nil, "", err
	}
	return manifests.OverlayFiles(consumer, rendered, overlay)
}

// printManifests prints all objects as one stream, each file under its path.
func printManifests(w io.Writer, consumer string, files map[string][]byte) error {
	for _, name := range sortedNames(files) {
		if path.Base(name) == "kustomization.yaml" {
			continue
		}
		if _, err := fmt.Fprintf(w, "---\n# %s/%s\n%s", manifests.Dir(consumer), name, files[name]); err != nil {
			return err
		}
	}
	return nil
}
