package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Decode reads a generated file strictly: an unknown or repeated field is an
// error, because what it says would be lost when the file is written again.
//
// Files of older versions have a contract's reason and message in one text,
// "<reason>: <message>", here and in its history: they are taken apart, so that
// nobody else has to know.
func Decode(b []byte, into any) error {
	if err := genyaml.UnmarshalStrict(b, into); err != nil {
		return err
	}
	if c, is := into.(*v1alpha1.Contract); is {
		apart(&c.Status.Reason, &c.Status.Message)
		for i := range c.Status.History {
			apart(&c.Status.History[i].Reason, &c.Status.History[i].Message)
		}
	}
	return nil
}

// apart takes a reason of the older form apart. No code has a colon and a space.
func apart(reason, message *string) {
	if *message == "" {
		*reason, *message, _ = strings.Cut(*reason, ": ")
	}
}

// Together is a contract with its reasons as older versions wrote them: what
// Decode takes apart in one text. For comparing with what they wrote.
func Together(c *v1alpha1.Contract) *v1alpha1.Contract {
	next := clone(c)
	s := &next.Status
	s.Reason, s.Message = s.Why(), ""
	s.History = slices.Clone(s.History)
	for i := range s.History {
		h := &s.History[i]
		h.Reason, h.Message = h.Why(), ""
	}
	return next
}

// storeError is a failure to read a file's bytes, as against a mistake in them:
// it fails the whole read, because it may be gone next time, while a mistake
// stays as long as the file does.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// verdict takes what a file's reader said apart: its mistake, or the store's
// failure.
func verdict(err error) (mistake, failure error) {
	var failed *storeError
	if errors.As(err, &failed) {
		return nil, failed
	}
	return err, nil
}

// readFile reads a file of the ledger, by decode.
func readFile[T any](store tree.Store, h tree.Hash, decode func([]byte) (T, error)) (T, error) {
	var none T
	b, err := store.File(h, maxFile)
	if errors.Is(err, tree.ErrTooLarge) {
		return none, fmt.Errorf("%w: at most %d bytes", err, maxFile)
	}
	if err != nil {
		return none, &storeError{err}
	}
	return decode(b)
}

// decodeAs reads a value of a kind.
func decodeAs(b []byte, kind string, meta *v1alpha1.TypeMeta, into any) error {
	if err := Decode(b, into); err != nil {
		return err
	}
	if meta.Kind != kind || meta.APIVersion != v1alpha1.APIVersion {
		return fmt.Errorf("is a %s of %s, want %s of %s", meta.Kind, meta.APIVersion, kind, v1alpha1.APIVersion)
	}
	return nil
}

func decodeContract(b []byte) (*v1alpha1.Contract, error) {
	c := &v1alpha1.Contract{}
	if err := decodeAs(b, v1alpha1.KindContract, &c.TypeMeta, c); err != nil {
		return nil, err
	}
	if !knownPhase(c.Status.Phase) {
		return nil, fmt.Errorf("status.phase: %q is no phase of a contract", c.Status.Phase)
	}
	if err := onnodes.Contract(c); err != nil {
		return nil, err
	}
	return c, nil
}

func decodeState(b []byte) (*v1alpha1.IntentState, error) {
	s := &v1alpha1.IntentState{}
	return s, decodeAs(b, v1alpha1.KindIntentState, &s.TypeMeta, s)
}

func decodeSpend(b []byte) (*v1alpha1.Spend, error) {
	s := &v1alpha1.Spend{}
	return s, decodeAs(b, v1alpha1.KindSpend, &s.TypeMeta, s)
}

func decodeSetAside(b []byte) (*v1alpha1.SetAside, error) {
	s := &v1alpha1.SetAside{}
	return s, decodeAs(b, v1alpha1.KindSetAside, &s.TypeMeta, s)
}

func readState(store tree.Store, h tree.Hash, tenant, intent string) (*v1alpha1.IntentState, error) {
	s, err := readFile(store, h, decodeState)
	if err != nil {
		return nil, err
	}
	if s.Metadata.Name != intent || s.Metadata.Namespace != tenant {
		return nil, fmt.Errorf("is the state of %s/%s", s.Metadata.Namespace, s.Metadata.Name)
	}
	return s, nil
}

func readSpend(store tree.Store, h tree.Hash, tenant, month string) (*v1alpha1.Spend, error) {
	s, err := readFile(store, h, decodeSpend)
	if err != nil {
		return nil, err
	}
	if s.Metadata.Name != month || s.Metadata.Namespace != tenant {
		return nil, fmt.Errorf("is the spend of %s in %s", s.Metadata.Namespace, s.Metadata.Name)
	}
	return s, nil
}

func readSetAside(store tree.Store, h tree.Hash) ([]v1alpha1.SetAsidePiece, error) {
	s, err := readFile(store, h, decodeSetAside)
	if err != nil {
		return nil, err
	}
	for i, p := range s.Pieces {
		if p.Path == "" || p.Hash == "" || i > 0 && p.Path <= s.Pieces[i-1].Path {
			return nil, fmt.Errorf("pieces[%d]: a piece has a path and a hash, and pieces stand by path", i)
		}
	}
	return s.Pieces, nil
}
