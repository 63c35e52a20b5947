package marketcrd

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds.
var GroupVersion = schema.GroupVersion{Group: "market.fleetbroker.io", Version: "v1alpha1"}

// AddToScheme makes the kinds known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Advertisement{}, &AdvertisementList{}, &AdvertisementPart{}, &AdvertisementPartList{}, &Heartbeat{}, &HeartbeatList{}, &Observation{}, &ObservationList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
