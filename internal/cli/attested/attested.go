// Package attested checks a file of a release by the release's provenance: `fleetbroker
// version --verify`.
//
//	provenance.intoto.jsonl ─► signature by the key ─► statement ─► subject of the file's digest
//
// It reads what `make release` writes: a DSSE envelope (https://github.com/secure-systems-lab/dsse)
// with an in-toto statement of SLSA's provenance, signed with ECDSA on P-256 over SHA-256,
// as cosign does. It trusts the key that its caller names and nothing else: nothing in the
// envelope is used before the signature was checked.
//
// Package cli calls it. Check is pure but for reading the three files; any goroutine may
// call it.
package attested

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/hints"
)

// File is the provenance's name, next to the files that it is of.
const File = "provenance.intoto.jsonl"

const (
	statementType = "application/vnd.in-toto+json"
	predicateType = "https://slsa.dev/provenance/v1"
)

// maxEnvelope bounds what is read of key and provenance, in bytes.
const maxEnvelope = 4 << 20

// Result is what a release attests of a file. Texts of the statement have no control
// characters.
type Result struct {
	// File as it was named, Digest its SHA-256 in hexadecimal, Subject the release's name
	// of it.
	File    string `json:"file"`
	Digest  string `json:"digest"`
	Subject string `json:"subject"`
	// Version of the release, Commit that it was built of, Builder who built it.
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Builder string `json:"builder"`
}

// Text is the result in one line.
func (r Result) Text() string {
	return fmt.Sprintf("%s is %s of release %s, built of commit %s by %s\n", r.File, r.Subject, r.Version, r.Commit, r.Builder)
}

// Options are what the flags of `version` say.
type Options struct{ file, key, provenance, release string }

// On describes the check in a command's help, and gives it the flags.
func (o *Options) On(cmd *cobra.Command) {
	cmd.Long = `Print the version of this program. With --verify: check an archive or program of a
release by its digest, the release's provenance and the public key of who releases.`
	cmd.Example = `  fleetbroker version
  fleetbroker version --verify fleetbroker_v0.1.0_linux_amd64.tar.gz --key cosign.pub`
	cmd.Flags().StringVar(&o.file, "verify", "", "archive or program of a release to check")
	cmd.Flags().StringVar(&o.key, "key", "", "public key of who releases, with --verify (PEM)")
	cmd.Flags().StringVar(&o.release, "release", "", "version that the file must be of, with --verify (default: any, where the file is called as in the release)")
	cmd.Flags().StringVar(&o.provenance, "provenance", "", "provenance of the release, with --verify (default: "+File+" next to the file)")
}

// Check checks the file that the flags name; nil where they name none.
func (o *Options) Check() (*Result, error) {
	if o.file == "" {
		return nil, nil //nolint:nilnil // nothing is asked
	}
	r, err := Check(o.file, o.key, o.provenance, o.release)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// envelope is DSSE's.
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     string `json:"payload"`
	Signatures  []struct {
		Sig string `json:"sig"`
	} `json:"signatures"`
}

// statement is the part of SLSA's provenance that is reported.
type statement struct {
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
	Predicate struct {
		BuildDefinition struct {
			ExternalParameters struct {
				Version string `json:"version"`
			} `json:"externalParameters"`
			ResolvedDependencies []struct {
				Digest map[string]string `json:"digest"`
			} `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

// Check checks a file by the public key of a release, a PEM file, and by its provenance; ""
// is the one next to the file. The file is called as in the release, which bears the version,
// or release is the version that it must be of: else an older release would pass for a
// newer. Errors name what did not hold.
func Check(file, keyFile, provenance, release string) (Result, error) {
	if keyFile == "" {
		return Result{}, hints.On(errors.New("no key to verify by"), "name the public key of who releases: --key cosign.pub")
	}
	if provenance == "" {
		provenance = filepath.Join(filepath.Dir(file), File)
	}
	key, err := readKey(keyFile)
	if err != nil {
		return Result{}, err
	}
	digest, err := digestOf(file)
	if err != nil {
		return Result{}, err
	}
	text, err := bounded(provenance)
	if err != nil {
		return Result{}, hints.On(fmt.Errorf("read the provenance: %w", err), "take "+File+" from where "+filepath.Base(file)+" is, or name it: --provenance FILE")
	}
	s, err := signed(text, key)
	if err != nil {
		return Result{}, fmt.Errorf("verify %s by %s: %w", file, provenance, err)
	}
	for _, subject := range s.Subject {
		if subject.Digest["sha256"] == digest {
			r := Result{File: file, Digest: digest, Subject: escape.Line(subject.Name), Version: escape.Line(s.Predicate.BuildDefinition.ExternalParameters.Version), Builder: escape.Line(s.Predicate.RunDetails.Builder.ID)}
			if release != "" && r.Version != release {
				return Result{}, fmt.Errorf("verify %s: it is of release %s, not of %s", file, r.Version, release)
			}
			if name := filepath.Base(file); release == "" && (name != filepath.Base(subject.Name) || !strings.Contains(name, r.Version)) {
				return Result{}, hints.On(fmt.Errorf("verify %s: it is %s of release %s, which its name does not say", file, r.Subject, r.Version), "where that is the version you want: --release "+r.Version)
			}
			for _, d := range s.Predicate.BuildDefinition.ResolvedDependencies {
				if c := d.Digest["gitCommit"]; c != "" {
					r.Commit = escape.Line(c)
				}
			}
			return r, nil
		}
	}
	return Result{}, hints.On(fmt.Errorf("verify %s: its digest %s is none of the release's %d files", file, digest, len(s.Subject)), "delete it; take it again from where the release is published")
}

// signed is the statement of an envelope that the key has signed.
func signed(text []byte, key *ecdsa.PublicKey) (*statement, error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("it is no DSSE envelope: %w", err)
	}
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("it is no DSSE envelope: payload: %w", err)
	}
	// What is signed: DSSE's pre-authentication encoding.
	pae := "DSSEv1 " + strconv.Itoa(len(e.PayloadType)) + " " + e.PayloadType + " " + strconv.Itoa(len(payload)) + " " + string(payload)
	sum, found := sha256.Sum256([]byte(pae)), false
	for _, s := range e.Signatures {
		signature, err := base64.StdEncoding.DecodeString(s.Sig)
		found = found || err == nil && ecdsa.VerifyASN1(key, sum[:], signature)
	}
	if !found {
		return nil, errors.New("the key has not signed it")
	}
	if e.PayloadType != statementType {
		return nil, fmt.Errorf("it is of type %q, not %q", e.PayloadType, statementType)
	}
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, fmt.Errorf("read the statement: %w", err)
	}
	if s.PredicateType != predicateType {
		return nil, fmt.Errorf("it states %q, not %q", s.PredicateType, predicateType)
	}
	return &s, nil
}

func readKey(file string) (*ecdsa.PublicKey, error) {
	text, err := bounded(file)
	if err != nil {
		return nil, fmt.Errorf("read the public key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, fmt.Errorf("read the public key: %s is no PEM of a PUBLIC KEY", file)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the public key: %s: %w", file, err)
	}
	key, is := parsed.(*ecdsa.PublicKey)
	if !is {
		return nil, fmt.Errorf("read the public key: %s is a %T; releases are signed with ECDSA", file, parsed)
	}
	return key, nil
}

func bounded(file string) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the user named it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnvelope+1))
	if err == nil && len(text) > maxEnvelope {
		err = fmt.Errorf("%s has more than %d bytes", file, maxEnvelope)
	}
	return text, err
}

func digestOf(file string) (string, error) {
	f, err := os.Open(file) //nolint:gosec // the user named it
	if err != nil {
		return "", fmt.Errorf("read what to verify: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read what to verify: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
