package reconciler

import (
	"strings"
	"testing"
)

// Whom a Cluster file names to apply manifests is let in with no contract made
// meanwhile, once.
func TestDeliverersAreLetInAtOnce(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, branch)
			rome := "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], deliverers: [ci@example.org]}\n"
			s.push(map[string]string{"clusters/rome.yaml": rome, "intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest(), placed, peering)
			s.push(map[string]string{"clusters/rome.yaml": strings.Replace(rome, "ci@", "cd@", 1)})
			s.rest()
			text, err := s.clusters.desired["rome"].Tree.ReadFile("namespaces/policies/namespace-guard.yaml", 1<<20)
			if err != nil || !strings.Contains(string(text), "'cd@example.org'") || strings.Contains(string(text), "ci@example.org") {
				t.Errorf("rome is told %v\n%s", err, text)
			}
			log, err := s.remote.Log(branch)
			if err != nil || !strings.HasPrefix(log[0].Message, "update policies of rome: ") {
				t.Errorf("the newest commit is %q, %v", log[0].Message, err)
			}
			head := s.remote.Head(branch)
			s.start()
			s.rest()
			if now := s.remote.Head(branch); now != head {
				t.Errorf("with nothing to do the ledger went from %s to %s", head, now)
			}
		})
	}
}
