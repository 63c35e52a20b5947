package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// What cosign writes and reads.
const (
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureKey  = "dev.cosignproject.cosign/signature"
	envelopeType  = "application/vnd.dsse.envelope.v1+json"
	statementType = "application/vnd.in-toto+json"
	provenance    = "https://slsa.dev/provenance/v1"
)

// signer signs with a key of the P-256 curve, as cosign does. It is nil where no key was
// named: then nothing is signed.
type signer struct{ key *ecdsa.PrivateKey }

// readSigner reads a private key: PKCS #8, or cosign's encrypted form, which
// COSIGN_PASSWORD opens.
func readSigner(path string) (*signer, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no key, no signatures
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("read the signing key: %s is not PEM", path)
	}
	der := block.Bytes
	switch block.Type {
	case "PRIVATE KEY":
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if der, err = encrypted.Decrypt(der, []byte(os.Getenv("COSIGN_PASSWORD"))); err != nil {
			return nil, fmt.Errorf("read the signing key: %w (COSIGN_PASSWORD opens %s)", err, path)
		}
	default:
		return nil, fmt.Errorf("read the signing key: %s holds a %q; make one with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256", path, block.Type)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read the signing key: %s is a %T; images are signed with ECDSA on P-256", path, key)
	}
	return &signer{private}, nil
}

// Sign signs a message. With KeyID, Verify and Public it is what dsse asks of a signer.
func (s *signer) Sign(_ context.Context, message []byte) ([]byte, error) {
	digest := sha256.Sum256(message)
	return ecdsa.SignASN1(rand.Reader, s.key, digest[:])
}

// KeyID is empty: there is one key.
func (s *signer) KeyID() (string, error) { return "", nil }

// image is cosign's signature of a digest: a statement as the one layer, signed in its
// annotation.
func (s *signer) image(ctx context.Context, ref name.Digest) (v1.Image, error) {
	payload, err := json.Marshal(signedPayload(ref))
	if err != nil {
		return nil, err
	}
	signature, err := s.Sign(ctx, payload)
	if err != nil {
		return nil, err
	}
	return artefact(payload, simpleSigning, map[string]string{signatureKey: base64.StdEncoding.EncodeToString(signature)})
}

// payload is what cosign signs.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

func signedPayload(ref name.Digest) payload {
	var p payload
	p.Critical.Identity.Reference = ref.Repository.Name()
	p.Critical.Image.Digest = ref.DigestStr()
	p.Critical.Type = "cosign container image signature"
	return p
}

// provenance is a signed statement of how a digest was built, as cosign attests it.
func (s *signer) provenance(ctx context.Context, statement []byte) (v1.Image, error) {
	content, err := s.envelope(ctx, statement)
	if err != nil {
		return nil, err
	}
	return artefact(content, envelopeType, map[string]string{signatureKey: "", "predicateType": provenance})
}

// envelope is a signed statement, as DSSE writes it.
func (s *signer) envelope(ctx context.Context, statement []byte) ([]byte, error) {
	envelopes, err := dsse.NewEnvelopeSigner(s)
	if err != nil {
		return nil, err
	}
	envelope, err := envelopes.SignPayload(ctx, statementType, statement)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope)
}

// subject is what a statement is of.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// statementOf is SLSA's provenance of an index.
func (o *options) statementOf(src source, ref name.Digest) ([]byte, error) {
	hash, err := v1.NewHash(ref.DigestStr())
	if err != nil {
		return nil, err
	}
	return o.statement(src, "images", map[string]any{"version": src.version, "platforms": o.platforms, "base": o.base}, subject{ref.Repository.Name(), map[string]string{hash.Algorithm: hash.Hex}})
}

// statement is SLSA's provenance: what was built, of which commit, by whom. It has no times
// and no invocation, so that who builds the same gets the same.
func (o *options) statement(src source, kind string, parameters map[string]any, of ...subject) ([]byte, error) {
	type object = map[string]any
	dependencies := []object{{"uri": "git+https://" + module, "digest": object{"gitCommit": src.revision}}}
	if o.base != "" {
		dependencies = append(dependencies, object{"uri": "oci://" + o.base})
	}
	return json.Marshal(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       of,
		"predicateType": provenance,
		"predicate": object{
			"buildDefinition": object{
				"buildType":            "https://" + module + "/" + kind + "/v1",
				"externalParameters":   parameters,
				"resolvedDependencies": dependencies,
			},
			"runDetails": object{"builder": object{"id": o.builder}},
		},
	})
}

// verify checks signature and provenance of what a reference names, and prints its digest.
func (o *options) verify(ctx context.Context, reference string) error {
	content, err := os.ReadFile(o.key)
	if err != nil {
		return fmt.Errorf("read the public key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "PUBLIC KEY" {
		return fmt.Errorf("read the public key: %s is no PEM of a PUBLIC KEY", o.key)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("read the public key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return fmt.Errorf("read the public key: %s is a %T, not ECDSA", o.key, parsed)
	}
	ref, err := name.ParseReference(reference, o.name()...)
	if err != nil {
		return err
	}
	descriptor, err := remote.Head(ref, o.remote(ctx)...)
	if err != nil {
		return err
	}
	digest := ref.Context().Digest(descriptor.Digest.String())
	if err := o.verifySignature(ctx, digest, key); err != nil {
		return fmt.Errorf("signature of %s: %w", digest, err)
	}
	if err := o.verifyProvenance(ctx, digest, key); err != nil {
		return fmt.Errorf("provenance of %s: %w", digest, err)
	}
	fmt.Println(digest)
	return nil
}

func (o *options) verifySignature(ctx context.Context, ref name.Digest, key *ecdsa.PublicKey) error {
	content, annotations, err := o.only(ctx, attached(ref, "sig"))
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(annotations[signatureKey])
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	if !ecdsa.VerifyASN1(key, sum[:], signature) {
		return errors.New("not made by this key")
	}
	var signed payload
	if err := json.Unmarshal(content, &signed); err != nil {
		return err
	}
	if signed.Critical.Image.Digest != ref.DigestStr() {
		return fmt.Errorf("it is of %s", signed.Critical.Image.Digest)
	}
	return nil
}

func (o *options) verifyProvenance(ctx context.Context, ref name.Digest, key *ecdsa.PublicKey) error {
	content, _, err := o.only(ctx, attached(ref, "att"))
	if err != nil {
		return err
	}
	var envelope dsse.Envelope
	if err := json.Unmarshal(content, &envelope); err != nil {
		return err
	}
	verifier, err := dsse.NewEnvelopeVerifier(public{key})
	if err != nil {
		return err
	}
	if _, err := verifier.Verify(ctx, &envelope); err != nil {
		return err
	}
	statement, err := envelope.DecodeB64Payload()
	if err != nil {
		return err
	}
	var said struct {
		Subject []struct{ Digest map[string]string }
	}
	if err := json.Unmarshal(statement, &said); err != nil {
		return err
	}
	for _, s := range said.Subject {
		if "sha256:"+s.Digest["sha256"] == ref.DigestStr() {
			return nil
		}
	}
	return errors.New("it is of another digest")
}

// public verifies with a key, for dsse.
type public struct{ key *ecdsa.PublicKey }

// Verify checks a signature of a message.
func (p public) Verify(_ context.Context, message, signature []byte) error {
	if sum := sha256.Sum256(message); !ecdsa.VerifyASN1(p.key, sum[:], signature) {
		return errors.New("not made by this key")
	}
	return nil
}

// KeyID is empty, as the signer's.
func (p public) KeyID() (string, error) { return "", nil }

// Public is the key.
func (p public) Public() crypto.PublicKey { return p.key }
