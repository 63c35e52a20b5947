package crd

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExtendedResourcesStandBesideTheOthers(t *testing.T) {
	const text = `{"cpu":"16","gpu":{"count":2},"memory":"8Gi","rdma/hca":2}`
	var r RequestedResources
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if v := r.Extended["rdma/hca"]; v.String() != "2" || len(r.Extended) != 1 || r.GPU.Count != 2 || r.CPU.String() != "16" {
		t.Errorf("read %+v", r)
	}
	back, err := json.Marshal(*r.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if string(back) != text {
		t.Errorf("written as %s", back)
	}
}

// Whoever may make a request may write in it what the schema lets pass: it is that request
// alone that cannot be served.
func TestRequestsAreReadWhateverIsInThem(t *testing.T) {
	for name, text := range map[string]string{
		"an object":       `{"cpu":"1","rdma/hca":{"no":"quantity"}}`,
		"a list":          `{"cpu":"1","x":[1,2]}`,
		"a fraction":      `{"cpu":"1","x":1.5}`,
		"a large number":  `{"cpu":99999999999,"x":99999999999999999999}`,
		"a very long one": `{"cpu":1,"x":` + strings.Repeat("9", 10_000) + `}`,
		"no GPUs":         `{"cpu":"1","gpu":"many"}`,
		"too many GPUs":   `{"cpu":"1","gpu":{"count":1e400}}`,
		"nothing":         `{"cpu":null,"gpu":null,"x":null}`,
		"no resources":    `[]`,
	} {
		var list ResourceRequestList
		if err := json.Unmarshal([]byte(`{"items":[{"metadata":{"name":"bad"},"spec":{"resources":`+text+`}},{"metadata":{"name":"good"},"spec":{"resources":{"cpu":"2"}}}]}`), &list); err != nil || len(list.Items) != 2 {
			t.Errorf("%s: %d requests, %v", name, len(list.Items), err)
			continue
		}
		if got := list.Items[1].Spec.Resources.CPU; got == nil || got.String() != "2" {
			t.Errorf("%s: the other asks for %v", name, got)
		}
		if _, err := json.Marshal(&list.Items[0]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for key, v := range list.Items[0].Spec.Resources.Extended {
			if len(v.String()) > 100 {
				t.Errorf("%s: %s is kept as %d bytes", name, key, len(v.String()))
			}
		}
	}
}
