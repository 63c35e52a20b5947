package hook

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxElements bounds each list and each map that is read of an object.
const maxElements = 4096

// maxName bounds names, in bytes.
const maxName = 253

// review is an AdmissionReview, as far as it is read: what the types here do not name is
// passed over without taking memory.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Request         *request `json:"request"`
}

// request is that of a review.
type request struct {
	UID         types.UID                   `json:"uid"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Namespace   string                      `json:"namespace"`
	Operation   admissionv1.Operation       `json:"operation"`
	UserInfo    struct {
		Username string `json:"username"`
	} `json:"userInfo"`
	Object    json.RawMessage `json:"object"`
	OldObject json.RawMessage `json:"oldObject"`
}

// ours reports whether a review has a request that can be logged and looked up.
func (r *review) ours() bool {
	return r.APIVersion == admissionv1.SchemeGroupVersion.String() && r.Request != nil &&
		len(r.Request.UID) <= maxName && len(r.Request.Namespace) <= maxName && len(r.Request.Resource.Resource) <= maxName
}

// readPod reads what the rule goes by.
func readPod(raw []byte) (*corev1.Pod, error) {
	var p struct {
		Metadata struct {
			Labels          words                       `json:"labels"`
			OwnerReferences list[metav1.OwnerReference] `json:"ownerReferences"`
		} `json:"metadata"`
		Spec struct {
			Tolerations list[corev1.Toleration] `json:"tolerations"`
		} `json:"spec"`
	}
	if err := read(raw, &p); err != nil {
		return nil, err
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: p.Metadata.Labels, OwnerReferences: p.Metadata.OwnerReferences},
		Spec:       corev1.PodSpec{Tolerations: p.Spec.Tolerations},
	}, nil
}

// readAnnotations reads an object's annotations.
func readAnnotations(raw []byte) (*metav1.PartialObjectMetadata, error) {
	var o struct {
		Metadata struct {
			Annotations words `json:"annotations"`
		} `json:"metadata"`
	}
	if err := read(raw, &o); err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: o.Metadata.Annotations}}, nil
}

// read reads JSON without repeating in its error what a stranger wrote.
func read(raw []byte, to any) error {
	err := json.Unmarshal(raw, to)
	if many := (*manyError)(nil); err == nil || errors.As(err, &many) {
		return err
	}
	return errors.New("it is not of the API's shape")
}

// manyError is a list or a map that is too long.
type manyError struct{ elements int }

func (e *manyError) Error() string {
	return fmt.Sprintf("it has %d labels, annotations, owners or tolerations; %d are the most", e.elements, maxElements)
}

// list is a list whose elements are counted before room is made for them.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	if n := elements(raw); n > maxElements {
		return &manyError{n}
	}
	return json.Unmarshal(raw, (*[]T)(l))
}

// words is a map of strings like list.
type words map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(raw []byte) error {
	if n := elements(raw); n > maxElements {
		return &manyError{n}
	}
	*w = nil // a name that comes twice adds nothing
	return json.Unmarshal(raw, (*map[string]string)(w))
}

// elements counts the elements of a list or a map in valid JSON, an empty one's as one.
func elements(raw []byte) int {
	n, depth, quoted := 1, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			n++
		}
	}
	return n
}
