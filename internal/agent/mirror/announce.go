package mirror

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// announce makes an Event of each piece of news, once: its name says which it is.
func (m *Mirror) announce(ctx context.Context, s State) []error {
	var errs []error
	told := map[string]bool{}
	for i := range s.Instructions.News {
		n := &s.Instructions.News[i]
		if n.ID == "" || m.announced[n.ID] {
			told[n.ID] = true
			continue
		}
		switch err := m.Client.Create(ctx, eventOf(s.Cluster, n)); {
		case err == nil, apierrors.IsAlreadyExists(err):
			told[n.ID] = true
		default:
			errs = append(errs, fmt.Errorf("report %s (%s) as an Event: %w", n.Reason, n.Text, err))
		}
	}
	m.announced = told
	return errs
}

// eventOf is news as an Event, in the namespace of all those whose object has
// none: an intent stands in git, and a queued one has nothing in the cluster.
func eventOf(cluster string, n *wire.News) *eventsv1.Event {
	about := corev1.ObjectReference{APIVersion: v1alpha1.APIVersion, Kind: "Tenant", Name: n.Tenant}
	if n.Tenant == "" {
		about.Kind, about.Name = "Cluster", cluster
	} else if n.Intent != "" {
		about.Kind, about.Name = "ResourceIntent", n.Tenant+"."+n.Intent
	}
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "fleetbroker." + strings.ToLower(n.ID), Namespace: metav1.NamespaceDefault, Labels: meta("").Labels},
		EventTime:  metav1.NewMicroTime(n.At.Time), Type: corev1.EventTypeNormal, Reason: n.Reason, Note: within.Note(n.Text),
		ReportingController: "fleet-agent", ReportingInstance: "fleet-agent-" + cluster, Action: "FollowLedger", Regarding: about,
	}
	if n.Warning {
		e.Type = corev1.EventTypeWarning
	}
	return e
}
