//go:build e2e && full

package liqo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// TestWithoutMutatingPolicies: clusters whose API servers serve no MutatingAdmissionPolicy,
// as consumer and as provider: today's with it switched off, and with -full the oldest that
// are worked with. An intent is refused, by name, until the consumer's file asks for the
// webhook; then it is Active, and its pod runs on the provider by what the webhook writes.
func TestWithoutMutatingPolicies(t *testing.T) {
	const v1 = "admissionregistration.k8s.io/v1/mutatingadmissionpolic"
	servers := map[string]rig.Options{
		"switched off": {APIServerArgs: []string{"--disable-admission-plugins=MutatingAdmissionPolicy", "--runtime-config=" + v1 + "ies=false," + v1 + "ybindings=false"}},
	}
	if *full {
		servers["1.30"], servers["1.33"] = rig.Options{Kubernetes: "1.30"}, rig.Options{Kubernetes: "1.33"}
	}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			address, release, err := env.ReserveAddress()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(release)
			f := startWith(t, func(o *rig.Options) {
				o.Kubernetes, o.APIServerArgs = server.Kubernetes, server.APIServerArgs
				o.AgentArgsOf = map[string][]string{"rome": {
					"--webhook-bind-address", address, "--webhook-configuration", "fleetbroker-intent-tolerations", "--leader-election-namespace", "fleetbroker",
				}}
			}, func(f *fleet) { f.webhook(address) }, "paris")
			f.Put("vision", "train", intent("vision", "train", 2))
			f.Eventually("the refusal", func() error {
				var page struct{ Data view.List[view.IntentRow] }
				text, err := f.ask("/api/ui/intents")
				if err == nil {
					err = json.Unmarshal([]byte(text), &page)
				}
				for _, row := range page.Data.Items {
					if row.Name == "train" && row.State == string(v1alpha1.IntentRefused) && row.Reason == "AdmissionNotServed" && row.Held == 0 {
						return err
					}
				}
				return fmt.Errorf("the intents are %s: %w", text, cmp.Or(err, errors.New("train is not refused")))
			})
			rome, err := os.ReadFile(filepath.Join(f.Platform.Dir, "clusters", "rome.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Platform.CommitAndPush(f.ctx, "The agent admits", map[string]string{"clusters/rome.yaml": string(rome) + "  admission: webhook\n"}); err != nil {
				t.Fatal(err)
			}
			node := f.Contract("vision", "train", "Active")
			f.apply("rome", f.how("vision/train"))
			f.runs("rome", "vision", node, 1)
			f.runs("paris", "vision-rome", "paris-gpu", 1)
			f.says("rome", "vision.train", "get", "pod", "train", "-n", "vision", "-o", "jsonpath={.spec.tolerations[?(@.key==\""+v1alpha1.TaintIntent+"\")].value}")
			f.run("rome", "delete", "pod", "train", "-n", "vision")
			f.Remove("vision", "train")
			f.Contract("vision", "train", "Released")
			f.Sound()
		})
	}
}

// webhook installs what leads rome's API server to the agent at an address: no kube-proxy
// leads to a Service here.
func (f *fleet) webhook(address string) {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.here(), "../../../fleet-repo-template/install/agent/webhook/webhook.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	at := string(text)
	for _, path := range []string{"pods", "resourcerequests"} {
		at = strings.ReplaceAll(at, "service: {name: fleet-agent-webhook, namespace: fleetbroker, path: /"+path+", port: 443}", "url: https://"+address+"/"+path)
	}
	file := filepath.Join(f.t.TempDir(), "webhook.yaml")
	if err := os.WriteFile(file, []byte(at), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.run("rome", "create", "namespace", "fleetbroker")
	f.run("rome", "apply", "-n", "fleetbroker", "-f", file)
}
