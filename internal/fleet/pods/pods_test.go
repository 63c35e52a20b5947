package pods_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/pods"
)

// Each wrong value of perPod says what is wrong and what to write.
func TestOf(t *testing.T) {
	for _, c := range []struct{ spec, at, want string }{
		{`{resources: {gpu: H100:8, cpu: 64, memory: 512Gi}, perPod: {gpu: 1, cpu: 8, memory: 64Gi}}`, "", ""},
		{`{resources: {gpu: H100:8}, perPod: {nvidia.com/gpu: 2}}`, "", ""},
		{`{resources: {gpu: H100:8}, perPod: {gpu: 8}, alternatives: [{gpu: A100:16}, {gpu: L4:4, perPod: {gpu: 2}}]}`, "", ""},
		{`{resources: {habana.ai/gaudi: 8, cpu: 16}, perPod: {habana.ai/gaudi: 1, cpu: 2}}`, "", ""},
		{`{resources: {gpu: H100:8}, perPod: {gpu: 3}}`, "[perPod]", "resources has 8 gpu, which is no whole multiple of 3; write 6 or 9 there, or a number here that divides 8"},
		{`{resources: {gpu: H100:4}, perPod: {gpu: 8}}`, "[perPod]", "a pod of 8 gpu is bigger than its replica, which has 4 (resources); write at most 4"},
		{`{resources: {cpu: 8}, perPod: {gpu: 1}}`, "[perPod]", "it asks for 1 GPUs, and resources for none; write there how many a replica has, such as gpu: 1"},
		{`{resources: {gpu: {share: "0.5"}}, perPod: {gpu: 1}}`, "[perPod]", "a share of one GPU is one pod; take gpu out of perPod, or share out of resources.gpu"},
		{`{resources: {gpu: H100:8}, perPod: {}}`, "[perPod]", "it names nothing; write what the biggest pod asks for, such as {gpu: 1, cpu: 8}, or leave it out"},
		{`{resources: {gpu: H100:8, cpu: 8}, perPod: {cpu: 1}}`, "[perPod]", "gpu is missing; write how many GPUs the biggest pod has, such as gpu: 1"},
		{`{resources: {cpu: 8}, perPod: {cpu: 1}}`, "[perPod]", "it names no device by which a replica is divided into pods"},
		{`{resources: {gpu: H100:8, cpu: 32}, perPod: {gpu: 1, cpu: 8}}`, "[perPod]", "8 pods of 8 cpu have more than resources has, 32; write 64 there, or at most 4 here"},
		{`{resources: {gpu: H100:8}, perPod: {gpu: 1, memory: 64Gi}}`, "[perPod]", "it asks for 64Gi of memory, and resources names none; write there at least 512Gi"},
		{`{resources: {gpu: H100:8, pods: 8}, perPod: {gpu: 1, pods: 1}}`, "[perPod]", "pods is a quota of the whole slice; take it out of perPod"},
		{`{resources: {gpu: H100:8, cpu: 8}, perPod: {gpu: 1, cpu: 0}}`, "[perPod]", "cpu is 0; write what the biggest pod needs, or leave it out for its share of the replica's"},
		{`{resources: {gpu: H100:8, rdma/hca: 4}, perPod: {gpu: 1, rdma/hca: 1}}`, "[perPod]", "by gpu a replica is 8 pods, by rdma/hca 4; write numbers that come to as many pods"},
		{`{resources: {gpu: H100:8, perPod: {gpu: 1}}}`, "[resources perPod]", "perPod is written next to resources, not in it; move it one level out"},
		{`{resources: {gpu: H100:8}, perPod: {gpu: 8}, alternatives: [{gpu: A100:12}]}`, "[alternatives 0]", "alternatives[0] has 12 gpu, which is no whole multiple of 8; write 8 or 16 there, or a number here that divides 12"},
		{`{resources: {gpu: H100:8}, alternatives: [{gpu: A100:8, perPod: {gpu: 5}}]}`, "[alternatives 0 perPod]", "alternatives[0] has 8 gpu, which is no whole multiple of 5"},
	} {
		var s v1alpha1.IntentSpec
		if err := yaml.Unmarshal([]byte(c.spec), &s); err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		got := pods.Of(&s, nil)
		if c.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v, want no problem", c.spec, got)
			}
			continue
		}
		if len(got) != 1 || fmt.Sprint(got[0].At) != c.at || !strings.Contains(got[0].Text, c.want) {
			t.Errorf("%s: %v, want %s at %s", c.spec, got, c.want, c.at)
		}
	}
}

// What cannot be read says what to write.
func TestPodRequest_Reads(t *testing.T) {
	for text, want := range map[string]string{
		`{gpu: H100:1}`: "write how many GPUs a pod has as a whole number from 1", `{gpu: 0}`: "whole number from 1",
		`{gpu: {count: 1}}`: "whole number from 1", `{gpu: 1, nvidia.com/gpu: 1}`: "nvidia.com/gpu asks for GPUs a second time", `3`: "write a map of what the biggest pod asks for",
	} {
		var p v1alpha1.PodRequest
		if err := yaml.Unmarshal([]byte(text), &p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
