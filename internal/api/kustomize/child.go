package kustomize

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net/http"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
)

// childName is the name under which a process is the child that builds.
const childName = "fleetbroker: kustomize"

func init() {
	child.Serve(childName, func(request []byte) ([]byte, error) {
		http.DefaultTransport = offline{} // kustomize loads addresses by it
		files, dir, err := readRequest(request)
		if err != nil {
			return nil, err
		}
		return here(files, dir)
	})
}

// builder is the one that builds for this process.
var builder = &child.Parent{Name: childName}

// built has the child build.
func built(p *child.Parent, files map[string][]byte, dir string) ([]byte, error) {
	ask := request(files, dir)
	hash := sha256.Sum256(ask)
	if death := deaths.of(hash); death != nil {
		return nil, death
	}
	out, err := p.Ask(ask, child.Default())
	var said child.Refusal
	if errors.As(err, &said) {
		return nil, refusal("", "%s", said)
	}
	deaths.note(hash, err)
	return out, err
}

// request is the directory and the files: their number, then name and text of
// each, all with their lengths before them.
func request(files map[string][]byte, dir string) []byte {
	var b bytes.Buffer
	frame := func(text []byte) {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) //nolint:gosec // bounded by MaxBytes
		b.Write(text)
	}
	frame([]byte(dir))
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(files)))) //nolint:gosec // bounded by MaxFiles
	for _, name := range sorted(files) {
		frame([]byte(name))
		frame(files[name])
	}
	return b.Bytes()
}

func readRequest(request []byte) (files map[string][]byte, dir string, err error) {
	number := func() int {
		if len(request) < 4 {
			err = io.ErrUnexpectedEOF
			return 0
		}
		n := binary.BigEndian.Uint32(request)
		request = request[4:]
		return int(n)
	}
	frame := func() []byte {
		n := number()
		if n > len(request) {
			err = io.ErrUnexpectedEOF
			n = 0
		}
		text := request[:n:n]
		request = request[n:]
		return text
	}
	dir = string(frame())
	n := number()
	files = map[string][]byte{}
	for i := 0; i < n && err == nil; i++ {
		name := string(frame())
		files[name] = frame()
	}
	return files, dir, err
}
