package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// OverlayOf is a consumer's overlay in the tree of the inputs, empty where there is
// none. What lies there and is no directory is a tree that OverlayFiles refuses: the
// consumer is delivered to without it, and no other one notices.
func OverlayOf(inputs tree.Tree, consumer string) (tree.Tree, error) {
	e, err := inputs.Find(path.Join(OverlayRoot, consumer))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tree.Tree{}, nil
	case err != nil:
		return tree.Tree{}, fmt.Errorf("find the overlay of %s: %w", consumer, err)
	case e.Kind != tree.Dir:
		return tree.Tree{Store: noDirectory{}, Root: e.Hash}, nil
	}
	return tree.Tree{Store: inputs.Store, Root: e.Hash}, nil
}

// noDirectory stands for an overlay that is a file, a link or a submodule.
type noDirectory struct{}

var errNoDirectory = errors.New("it is not a directory; replace it by one with a kustomization.yaml, or delete it")

// Dir is an error.
func (noDirectory) Dir(tree.Hash) ([]tree.Entry, error) { return nil, errNoDirectory }

// File is an error.
func (noDirectory) File(tree.Hash, int64) ([]byte, error) { return nil, errNoDirectory }

var errTooMuch = fmt.Errorf("it has more than %d files or %d MiB, which is more than is built; keep other files elsewhere", kustomize.MaxFiles, kustomize.MaxBytes>>20)

// OverlayFiles are a consumer's rendered files with its overlay applied to them
// (ApplyOverlay). Of the overlay no more is read than may be built.
func OverlayFiles(consumer string, rendered map[string][]byte, overlay tree.Tree) (files map[string][]byte, problem string, err error) {
	patches, size := map[string][]byte{}, 0
	err = overlay.Walk(func(name string, e tree.Entry) error {
		if e.Kind != tree.File && e.Kind != tree.Executable {
			return nil
		}
		if len(patches) == kustomize.MaxFiles {
			return errTooMuch
		}
		text, err := overlay.Store.File(e.Hash, kustomize.MaxBytes)
		if errors.Is(err, tree.ErrTooLarge) || size+len(text) > kustomize.MaxBytes {
			return errTooMuch
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		size += len(text)
		patches[name] = text
		return nil
	})
	switch {
	case errors.Is(err, errTooMuch):
		return rendered, ignored(consumer, errTooMuch), nil
	case errors.Is(err, errNoDirectory):
		return rendered, ignored(consumer, errNoDirectory), nil
	case err != nil:
		return nil, "", fmt.Errorf("read the overlay of %s: %w", consumer, err)
	}
	return ApplyOverlay(consumer, rendered, patches)
}

func ignored(consumer string, why error) string {
	return fmt.Sprintf("%s/%s is ignored: %v", OverlayRoot, consumer, why)
}
