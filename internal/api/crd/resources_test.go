package crd

import (
	"encoding/json"
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
	if err := json.Unmarshal([]byte(`{"rdma/hca":{"no":"quantity"}}`), &r); err == nil {
		t.Error("an object was read as a quantity")
	}
}
