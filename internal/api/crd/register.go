package crd

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// GroupVersion of the kinds.
var GroupVersion = schema.GroupVersion{Group: v1alpha1.Group, Version: "v1alpha1"}

// AddToScheme makes the kinds known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ResourceRequest{}, &ResourceRequestList{}, &Advertisement{}, &AdvertisementList{},
		&ReservationInstruction{}, &ReservationInstructionList{}, &ProviderInstruction{}, &ProviderInstructionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
