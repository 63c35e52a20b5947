package laid

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/laid/merge"
)

// maxBase bounds the files as they were generated, in bytes when unpacked.
const maxBase = 64 << 20

// merged is a file that people edited, with what is new; clean is false where that cannot
// be told: what was generated the last time is not known, the same lines changed, or the
// two do not make a file of the kind that each of them is.
func (w *writer) merged(name string, have, content []byte) (text []byte, clean bool) {
	base, known := w.base[name]
	if !known || w.old[name] != digest(base) {
		return nil, false
	}
	for _, side := range [][]byte{base, have, content} {
		if !utf8.Valid(side) || bytes.IndexByte(side, 0) >= 0 {
			return nil, false
		}
	}
	out, clean := merge.Text(string(base), string(have), string(content))
	if !clean || well(name, have) && well(name, content) && !well(name, []byte(out)) {
		return nil, false
	}
	return []byte(out), true
}

// well reports whether a file that is YAML by its name is: no key of it is there twice.
func well(name string, content []byte) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
	default:
		return true
	}
	for doc := range strings.SplitSeq("\n"+string(content), "\n---\n") {
		var value any
		if yaml.UnmarshalStrict([]byte(doc), &value) != nil {
			return false
		}
	}
	return true
}

// readBase reads the files as they were generated. What is damaged counts as not there:
// each file is held to the lock's digest before it is used.
func readBase(root *os.Root, name string) (map[string][]byte, error) {
	packed, found, err := read(root, name)
	if err != nil || !found {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // damaged
	}
	text, err := io.ReadAll(io.LimitReader(z, maxBase))
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // damaged
	}
	var files map[string][]byte
	if json.Unmarshal(text, &files) != nil {
		return nil, nil //nolint:nilnil // damaged
	}
	return files, nil
}

// pack is the file with the files as they are generated: the same files, the same bytes.
func pack(name string, files map[string][]byte) ([]byte, error) {
	text, err := json.Marshal(files)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	if _, err = z.Write(text); err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return packed.Bytes(), nil
}
