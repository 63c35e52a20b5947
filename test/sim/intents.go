package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// wish is what a team's intent asks for: the part of ResourceIntent that a
// run varies.
type wish struct {
	consumer    string
	replicas    int
	gang        bool
	written     bool   // gang: true stands in the file
	within      string // {by, policy} of placement.within
	minReplicas int
	gpus        int // 0: none
	model       string
	gpuMemory   string
	share       bool // half a GPU
	cpu         int
	memoryGi    int
	storageGi   int
	alternative string
	deny        string
	region      string
	where       string
	spread      string // by provider or region
	maxHourly   int
	duration    time.Duration
	notBefore   time.Duration // since epoch
	window      int           // opens so many minutes after epoch, for six; 0: none
	priority    int
	queue       string
	timeout     time.Duration
	stage       string
	suspend     bool
	offload     bool
	strategy    string
	preempts    bool
	fixed       bool // not preemptible
	grace       time.Duration
	labelled    bool // its nodes carry a label of the team
}

// intent is a file under intents/ as its team last wrote it.
type intent struct {
	tenant, name, path string
	wish               wish
	broken             bool // its file does not parse
	renamedFrom        string
}

func (i *intent) key() string { return i.tenant + "/" + i.name }

// text is the file.
func (i *intent) text() string {
	if i.broken {
		return "kind: ResourceIntent\nmetadata: {name: " + i.name + "\n  spec: [\n"
	}
	w := &i.wish
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata:\n  name: %s\n  namespace: %s", i.name, i.tenant)
	if i.renamedFrom != "" {
		line("  annotations: {fleetbroker.io/renamed-from: %s}", i.renamedFrom)
	}
	line("spec:\n  replicas: %d\n  priority: %d", w.replicas, w.priority)
	if w.consumer != "" {
		line("  consumer: %s", w.consumer)
	}
	if w.gang && w.written {
		line("  gang: true")
	}
	if !w.gang {
		line("  gang: false\n  minReplicas: %d", w.minReplicas)
	}
	line("  resources:\n    cpu: \"%d\"\n    memory: %dGi\n    pods: \"10\"\n    ephemeral-storage: %dGi", w.cpu, w.memoryGi, w.storageGi)
	switch {
	case w.share:
		line("    gpu: {share: \"0.5\"}")
	case w.gpus > 0:
		line("    gpu: {count: %d%s%s}", w.gpus, prefixed(", models: [", w.model, "]"), prefixed(", memory: ", w.gpuMemory, ""))
	}
	if w.alternative != "" {
		line("  alternatives:\n  - gpu: %q", w.alternative)
	}
	w.placementText(line)
	w.termsText(i.tenant, line)
	return b.String()
}

func (w *wish) placementText(line func(string, ...any)) {
	var parts []string
	if w.deny != "" {
		parts = append(parts, "providers: {deny: ["+w.deny+"]}")
	}
	if w.region != "" {
		parts = append(parts, "regions: ["+w.region+"]")
	}
	if w.where != "" {
		parts = append(parts, "where: '"+w.where+"'")
	}
	if w.spread != "" {
		parts = append(parts, "spread: [{by: "+w.spread+", maxSkew: 1}]")
	}
	if w.within != "" {
		parts = append(parts, "within: {"+w.within+"}")
	}
	if len(parts) > 0 {
		line("  placement: {%s}", strings.Join(parts, ", "))
	}
}

// shares is the kind of domain that all replicas must be in, "" for none.
func (w *wish) shares() string {
	switch {
	case w.within == "by: provider" || w.within == "" && w.gang && w.written && w.spread == "":
		return "provider"
	case strings.HasPrefix(w.within, "by: region"):
		return "region"
	}
	return ""
}

func (w *wish) termsText(tenant string, line func(string, ...any)) {
	if w.labelled {
		line("  virtualNode: {labels: {team: sim}}")
	}
	if w.maxHourly > 0 {
		line("  budget: {maxHourly: \"%d\", currency: EUR}", w.maxHourly)
	}
	var schedule []string
	if w.duration > 0 {
		schedule = append(schedule, "duration: "+w.duration.String())
	}
	if w.notBefore > 0 {
		schedule = append(schedule, "notBefore: "+epoch.Add(w.notBefore).Format(time.RFC3339))
	}
	if w.window > 0 {
		from := epoch.Add(time.Duration(w.window) * time.Minute)
		schedule = append(schedule, fmt.Sprintf("windows: [{days: [Fri], from: %q, to: %q, timezone: UTC}]", from.Format("15:04"), from.Add(6*time.Minute).Format("15:04")))
	}
	if len(schedule) > 0 {
		line("  schedule: {%s}", strings.Join(schedule, ", "))
	}
	if w.preempts || w.fixed || w.grace > 0 {
		line("  preemption: {preempts: %s, preemptible: %t, grace: %s}", map[bool]string{true: "lower", false: "never"}[w.preempts], !w.fixed, w.grace)
	}
	if w.queue != "" {
		line("  queue: {policy: %s%s}", w.queue, prefixed(", timeout: ", positive(w.timeout), ""))
	}
	if w.stage != "" {
		line("  stage: %s", w.stage)
	}
	if w.suspend {
		line("  suspend: true")
	}
	if w.offload {
		line("  offload: {namespaces: [{name: %s, create: true%s}]}", tenant, prefixed(", podOffloadingStrategy: ", w.strategy, ""))
	}
}

func positive(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return d.String()
}

func prefixed(before, s, after string) string {
	if s == "" {
		return ""
	}
	return before + s + after
}

// models are the cards that providers have, with the memory of each.
var models = []struct{ name, memory, vendor string }{
	{"nvidia-h100", "80Gi", "nvidia"}, {"nvidia-a100", "40Gi", "nvidia"}, {"nvidia-l40s", "48Gi", "nvidia"}, {"nvidia-t4", "16Gi", "nvidia"},
}

var regions = []string{"eu-west", "eu-north", "us-east"}

// drawWish makes up what a team wants. Most of it is plain, so that much is
// placed.
func drawWish(r *rand.Rand, k *knobs, now time.Duration) wish {
	w := wish{
		replicas: 1, gang: true, cpu: 1 + r.IntN(16), memoryGi: 4 << r.IntN(5), storageGi: 10,
		priority: 10 * r.IntN(5),
	}
	if r.IntN(4) == 0 {
		w.replicas = 2 + r.IntN(3)
		if r.IntN(2) == 0 {
			w.gang, w.minReplicas = false, 1+r.IntN(w.replicas)
		}
	}
	if r.IntN(4) != 0 {
		w.gpus = 1 << r.IntN(4)
		m := models[r.IntN(len(models))]
		switch r.IntN(4) {
		case 0, 1:
			w.model = m.name
		case 2:
			w.gpuMemory = m.memory
		}
		if r.IntN(5) == 0 {
			w.alternative = "A100:1"
		}
	} else if r.IntN(4) == 0 {
		w.share = true
	}
	if k.consumers > 1 && r.IntN(2) == 0 {
		w.consumer = consumerName(1)
	}
	w.drawLimits(r, k)
	w.drawTerms(r, now)
	return w
}

func (w *wish) drawLimits(r *rand.Rand, k *knobs) {
	switch r.IntN(10) {
	case 0:
		w.deny = providerName(r.IntN(k.providers))
	case 1:
		w.region = regions[r.IntN(len(regions))]
	case 2:
		w.where = "flavor.capacity.cpu >= 48"
		if r.IntN(2) == 0 {
			w.where = `flavor.location.region != "us-east"`
		}
	case 3:
		w.maxHourly = 2 + r.IntN(40)
	case 4:
		w.labelled = r.IntN(3) == 0
	case 5:
		w.spread = pick(r, "provider", "region")
	case 6:
		w.within = pick(r, "by: provider", "by: region, policy: Required", "by: provider, policy: Preferred", "policy: None")
	case 7:
		w.written = true
	}
	w.offload = r.IntN(2) == 0
	if w.offload && r.IntN(2) == 0 {
		w.strategy = pick(r, "Remote", "LocalAndRemote")
	}
}

func (w *wish) drawTerms(r *rand.Rand, now time.Duration) {
	switch r.IntN(8) {
	case 0, 1:
		w.duration = pick(r, 3*time.Minute, 10*time.Minute, time.Hour)
	case 2:
		w.notBefore = (now + span(r, time.Minute, 10*time.Minute)).Truncate(time.Second)
	case 3:
		w.window = int(now/time.Minute) + 1 + r.IntN(5)
	}
	switch r.IntN(8) {
	case 0:
		w.queue = "fail"
	case 1:
		w.queue, w.timeout = "wait", 5*time.Minute
	}
	switch r.IntN(6) {
	case 0, 1:
		w.preempts = true
	case 2:
		w.fixed = true
	}
	w.grace = pick(r, 0, 0, 20*time.Second, 2*time.Minute)
	switch r.IntN(16) {
	case 0:
		w.stage = "find"
	case 1:
		w.stage = "reserve"
	}
}

// edited is a wish after its team thought again.
func (w wish) edited(r *rand.Rand, k *knobs, now time.Duration) wish {
	switch r.IntN(9) {
	case 0, 1:
		if w.gpus > 0 {
			w.gpus = 1 << r.IntN(4)
		} else {
			w.cpu = 1 + r.IntN(16)
		}
	case 2:
		w.memoryGi = 4 << r.IntN(5)
	case 3:
		w.priority = 10 * r.IntN(50)
	case 4:
		w.replicas, w.gang = 1+r.IntN(4), true
	case 5:
		w.suspend = !w.suspend
	case 6:
		w.offload = !w.offload
	case 7:
		w.duration = pick(r, 0, 10*time.Minute, 2*time.Hour)
	default:
		w = drawWish(r, k, now)
	}
	return w
}

// pathsOf are the paths of intents that hold for a condition, sorted.
func pathsOf(all map[string]*intent, is func(*intent) bool) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if is(all[k]) {
			out = append(out, all[k].path)
		}
	}
	return out
}

func consumerName(i int) string { return []string{"rome", "bern"}[i] }

func providerName(i int) string { return []string{"paris", "oslo", "milan", "lyon", "turin"}[i] }

func tenantName(i int) string { return []string{"vision", "speech", "bio"}[i] }
