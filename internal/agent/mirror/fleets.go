package mirror

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxName is what Kubernetes takes of a name, in bytes.
const maxName = 253

// fleet is the id of the fleet whose agent shows this, "" where it has none; nil while
// no broker was heard.
func (s State) fleet() *string {
	if s.Instructions == nil {
		return nil
	}
	return &s.Instructions.Fleet
}

// apart gives of the pictures that are there those that are this fleet's, and what is
// wanted with names and labels that keep them apart from others'. While it is not known
// whose they are, only what bears no id is written, and nothing is removed.
func apart[T client.Object](fleet *string, have, want []T) (mine, wanted []T) {
	there, wants := map[string]T{}, map[string]bool{}
	for _, o := range have {
		there[o.GetName()] = o
	}
	id := ""
	if fleet != nil {
		id = *fleet
	}
	for _, w := range want {
		name := w.GetName()
		if o, is := there[name]; is && ofOther(o, id) {
			if id == "" {
				continue
			}
			w.SetName(v1alpha1.CutName(name+"-"+id, maxName))
		}
		if id != "" {
			labels := maps.Clone(w.GetLabels())
			labels[v1alpha1.LabelFleet] = id
			w.SetLabels(labels)
		}
		wants[w.GetName()] = true
		wanted = append(wanted, w)
	}
	for _, o := range have {
		switch whose := o.GetLabels()[v1alpha1.LabelFleet]; {
		case wants[o.GetName()] && !ofOther(o, id), fleet != nil && whose == id:
			mine = append(mine, o)
		}
	}
	return mine, wanted
}

// ofOther reports whether a picture bears another fleet's id.
func ofOther(o client.Object, id string) bool {
	whose := o.GetLabels()[v1alpha1.LabelFleet]
	return whose != "" && whose != id
}
