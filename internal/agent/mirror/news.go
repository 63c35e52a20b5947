package mirror

import (
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// shown is what of a picture is told as an Event when it changes.
type shown struct {
	phase, slice, message string
	expires               *metav1.Time
	expiring              bool
}

// news is one Event.
type news struct {
	kind, reason, note string
}

// newsOf is what has become of a contract between two pictures of it.
func newsOf(was, is shown) []news {
	var out []news
	if was.phase != is.phase {
		n := news{corev1.EventTypeNormal, is.phase, "the contract is " + is.phase}
		if is.message != "" {
			n.note += ": " + is.message
		}
		if p := v1alpha1.Phase(is.phase); p == v1alpha1.PhaseDegraded || p == v1alpha1.PhaseFailed {
			n.kind = corev1.EventTypeWarning
		}
		out = append(out, n)
	}
	if denied := string(authv1beta1.ResourceSliceConditionDenied); was.slice != is.slice && is.slice == denied {
		out = append(out, news{corev1.EventTypeWarning, "SliceDenied", "its slice is denied: " + is.message})
	}
	switch {
	case was.expires.Equal(is.expires):
	case is.expires == nil:
		out = append(out, news{corev1.EventTypeNormal, "Renewed", "its term has no end any more"})
	default:
		out = append(out, news{corev1.EventTypeNormal, "Renewed", fmt.Sprintf("its term ends at %s", is.expires.UTC().Format(time.RFC3339))})
	}
	if is.expiring && !was.expiring && is.expires != nil {
		out = append(out, news{corev1.EventTypeWarning, "Expiring", fmt.Sprintf("it ends at %s: a longer schedule.duration of its intent extends it", is.expires.UTC().Format(time.RFC3339))})
	}
	return out
}

func shownProvider(p *crd.ProviderInstruction) shown {
	return shown{phase: p.Status.Phase, slice: p.Status.Slice, message: p.Status.Message, expires: p.Spec.ExpiresAt}
}

// why is a contract's reason and message in one line.
func why(s crd.ReservationInstructionStatus) string {
	return (&v1alpha1.ContractStatus{Reason: s.Reason, Message: s.Message}).Why()
}

func shownReservation(r *crd.ReservationInstruction) shown {
	return shown{phase: r.Status.Phase, message: why(r.Status), expires: r.Spec.ExpiresAt, expiring: r.Status.Expiring}
}

// tell makes Events of what has changed on objects that stand already, by name.
func tell[T client.Object](to events.EventRecorder, have, want []T, read func(T) shown) {
	if to == nil {
		return
	}
	next := make(map[string]T, len(want))
	for _, w := range want {
		next[w.GetName()] = w
	}
	for _, o := range have {
		w, stands := next[o.GetName()]
		if !stands || read(o).phase == "" { // the first picture is no news
			continue
		}
		for _, n := range newsOf(read(o), read(w)) {
			to.Eventf(o, nil, n.kind, n.reason, "FollowLedger", "%s", within.Note(n.note))
		}
	}
}
