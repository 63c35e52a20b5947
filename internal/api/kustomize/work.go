package kustomize

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// What a build costs, in microseconds of processor time as measured on kustomize 5: each
// object is compared with each other, each element of an instruction is looked for in each
// object that the instruction is for, and a patch makes a text of the object and reads it
// again.
const (
	perByte    = 3  // of an object that is read and written
	perElement = 80 // of an instruction, for each object
	perPatch   = 8  // elements that a patch costs besides its own
	perEarlier = 6  // for each earlier instruction of an object, which remembers its names
	perNamed   = 1  // for each object that a patch by name passes over
	perLook    = 4  // for each element of a field of references, and each pair of objects
	perLiteral = 5  // of a generator
	// perSelector are the elements that one of a list's elements costs to find, as by
	// `[name=x]`.
	perSelector = 5
	// Lists are searched from their beginning: what an element costs grows by one for so
	// many others of its instruction, its generator, and its fields of references.
	others, otherLiterals, otherReferences = 32, 50, 6
	// For so many bytes of an object an element of a patch, another element, a look for
	// names, and one that is configured cost one more.
	patchBytes, otherBytes, lookBytes, configuredBytes = 3, 7, 12, 20
	// bytesOf an element: a longer text counts as several. One that may be a path or a
	// pattern costs more than one that is put somewhere.
	bytesOf, bytesPut = 16, 256
	// maxInstructions of one kustomization with its components.
	maxInstructions = 10_000
)

// objects are counted, with what tells the cost of changing them.
type objects struct {
	amount
	referring int // bytes of those of a kind in which kustomize looks for names
	named     map[string]amount
	long      *Refusal // of a file's first name that is too long
}

// amount is how many objects, and of how many bytes.
type amount struct{ n, bytes int }

func (a amount) plus(b amount) amount { return amount{a.n + b.n, a.bytes + b.bytes} }

// referrers are the kinds whose fields kustomize holds against all names after any
// change, by its default configuration (nameReference).
var referrers = []string{
	"APIService", "ClusterRole", "ClusterRoleBinding", "CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Job",
	"MutatingWebhookConfiguration", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicaSet",
	"ReplicationController", "Role", "RoleBinding", "Service", "ServiceAccount", "StatefulSet", "StorageClass", "ValidatingWebhookConfiguration",
}

// read counts a document; lists are taken apart, as kustomize does.
func (o *objects) read(doc []byte, depth int) {
	var object struct {
		Kind     any `json:"kind"`
		Metadata struct {
			Name any `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	kind, name := "", ""
	if json.Unmarshal(doc, &object) == nil {
		kind, _ = object.Kind.(string)
		name, _ = object.Metadata.Name.(string)
	}
	if strings.HasSuffix(kind, "List") && depth < maxListed && len(object.Items) > 0 {
		for _, item := range object.Items {
			o.read(item, depth+1)
		}
		return
	}
	one := amount{1, len(doc)}
	referring := 0
	if slices.Contains(referrers, kind) {
		referring = len(doc)
	}
	if o.long == nil {
		o.long = tooLong("", "metadata.name", name)
	}
	o.add(objects{amount: one, referring: referring, named: map[string]amount{name: one}})
}

// add counts others, too.
func (o *objects) add(others objects) {
	o.amount, o.referring = o.plus(others.amount), o.referring+others.referring
	for name, of := range others.named {
		if o.named == nil {
			o.named = map[string]amount{}
		}
		o.named[name] = o.named[name].plus(of)
	}
}

// called are those that one name may mean: their own may have been made longer since.
func (o *objects) called(name string) (of amount) {
	for own, has := range o.named {
		if strings.Contains(name, own) {
			of = of.plus(has)
		}
	}
	return of
}

// work is what it costs to pass the objects through one kustomization, counted up to most.
func (o *objects) work(instructions []instruction, most int) int {
	n := o.n*o.n + o.referring/lookBytes*o.n
	earlier := map[string]int{}
	for _, i := range instructions {
		of, bytes := o.amount, otherBytes
		if i.patch {
			bytes = patchBytes
		}
		if i.name != "" {
			of = o.called(i.name)
			n += perNamed * o.n
		}
		n += i.elements*(of.n*(perElement+i.elements/others)+of.bytes/bytes) + of.n*perEarlier*(earlier[""]+earlier[i.name])
		n += i.references * (o.n*(perLook*o.n+o.bytes/configuredBytes) + i.references/otherReferences)
		if earlier[i.name]++; n < 0 || n > most {
			return most + 1
		}
	}
	return n
}

// instruction is one thing that a kustomization does to objects.
type instruction struct {
	name     string // of the one object that it is for; "": of any
	elements int
	patch    bool // it makes a text of an object
	// references are the elements that have kustomize look for names of objects in
	// objects.
	references int
}

// weigh takes a kustomization apart.
func (s *set) weigh(dir string, k *types.Kustomization, fields map[string]json.RawMessage) (l load) {
	l.refs = slices.Concat(k.Resources, k.Bases) //nolint:staticcheck // old files use bases
	l.components = k.Components
	rest := 0
	for _, field := range sorted(fields) {
		switch field {
		case "apiVersion", "kind", "metadata", "resources", "bases", "components", "crds", "configurations",
			"patches", "patchesJson6902", "patchesStrategicMerge":
		case "configMapGenerator", "secretGenerator":
			l.made.bytes += len(fields[field])
		case "namePrefix", "nameSuffix", "namespace", "commonAnnotations", "commonLabels":
			rest += elementsIn(fields[field], bytesPut)
		default:
			rest += elementsIn(fields[field], bytesOf)
		}
	}
	for _, args := range generators(k) {
		l.made.n++
		literals := len(args.LiteralSources) + len(args.FileSources)
		for _, source := range slices.Concat(args.FileSources, args.EnvSources, []string{args.EnvSource}) {
			_, file, found := strings.Cut(source, "=")
			if !found {
				file = source
			}
			l.made.bytes += len(s.files[path.Join(dir, file)]) // one line, as it is handed over
		}
		l.work += literals * (perLiteral + literals/otherLiterals)
	}
	for _, r := range k.Replacements {
		rest += elementsIn(s.files[path.Join(dir, r.Path)], bytesOf)
	}
	if rest > 0 {
		l.instructions = append(l.instructions, instruction{elements: rest})
	}
	configured := 0
	for _, file := range slices.Concat(k.Crds, k.Configurations) {
		configured += elementsIn(s.files[path.Join(dir, file)], bytesOf)
	}
	if configured > 0 {
		l.instructions = append(l.instructions, instruction{elements: configured, references: configured})
	}
	patch := func(target *types.Selector, file, text string) {
		if file != "" {
			text = string(s.files[path.Join(dir, file)])
		}
		instructions, copies := patched(target, text)
		at := ""
		if file != "" && target == nil {
			at = path.Join(dir, file)
		}
		for _, i := range instructions {
			if l.long == nil {
				l.long = tooLong(at, "the name that a patch is for", i.name)
			}
		}
		l.instructions, l.copies = append(l.instructions, instructions...), l.copies+copies
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // old files use them
		patch(p.Target, p.Path, p.Patch)
	}
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // old files use them
		if _, ok := s.files[path.Join(dir, string(p))]; ok {
			patch(nil, string(p), "")
		} else {
			patch(nil, "", string(p))
		}
	}
	return l
}

// patched are the instructions of one patch, and how many of its operations copy. Without
// a target each document names the object that it is for.
func patched(target *types.Selector, text string) (list []instruction, copies int) {
	name, extra := "", 0
	if target != nil {
		if name = target.Name; name != regexp.QuoteMeta(name) {
			name = ""
		}
		if name == "" {
			extra = (len(target.Name) + len(target.Namespace) + len(target.Kind) + len(target.LabelSelector) + len(target.AnnotationSelector)) / bytesOf
		}
	}
	for _, doc := range documents([]byte(text)) {
		i := instruction{name: name, patch: true, elements: perPatch + extra + elements(doc, bytesPut)}
		if target == nil {
			i.name = nameOf(doc)
		}
		list, copies = append(list, i), copies+copiesIn(doc)
	}
	return list, copies
}

// nameOf is the name that a document gives its object, "" for none.
func nameOf(doc any) string {
	object, _ := doc.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// copiesIn is how many operations of a JSON patch copy; none where it is no list
// of operations.
func copiesIn(doc any) (n int) {
	operations, _ := doc.([]any)
	for _, o := range operations {
		if operation, _ := o.(map[string]any); operation["op"] == "copy" {
			n++
		}
	}
	return n
}

// documents are the values of a YAML text; what is none is a text, and refused by kustomize.
func documents(text []byte) (values []any) {
	for doc := range strings.SplitSeq("\n"+string(text), "\n---") {
		var value any
		if yaml.Unmarshal([]byte(doc), &value) != nil {
			value = doc
		}
		values = append(values, value)
	}
	return values
}

// elementsIn are the scalars of a YAML text, one for each so many bytes of it and its keys.
func elementsIn(text []byte, bytes int) (n int) {
	for _, doc := range documents(text) {
		n += elements(doc, bytes)
	}
	return n
}

func elements(value any, bytes int) int {
	switch v := value.(type) {
	case map[string]any:
		n := 0
		for key, of := range v {
			n += len(key)/bytes + elements(of, bytes)
		}
		return max(n, 1)
	case []any:
		n := 0
		for _, of := range v {
			n += elements(of, bytes)
		}
		return max(n, 1)
	case string:
		n := 1 + len(v)/bytes
		if bytes == bytesOf {
			n += perSelector * strings.Count(v, "[")
		}
		return n
	}
	return 1
}
