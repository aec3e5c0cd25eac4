package hostagent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
)

// Errors of enrolment that trying again does not mend.
var (
	// ErrToken: the token is malformed, missing, or the console does not take it.
	ErrToken = errors.New("enrolment token")
	// ErrPin: the console that answered is not the one that the token is for.
	ErrPin = errors.New("the console's CA is not the one in the enrolment token")
)

// tokenForm is version, secret and the SHA-256 of the console's CA certificate.
var tokenForm = regexp.MustCompile(`^berth-enrol-v1\.[0-9A-Za-z_-]{16,128}\.([0-9a-f]{64})$`)

// fingerprint is the SHA-256 of a certificate's DER form.
type fingerprint [sha256.Size]byte

// pinOf reads the fingerprint of the console's CA out of a token.
func pinOf(token string) (fingerprint, error) {
	var pin fingerprint
	m := tokenForm.FindStringSubmatch(token)
	if m == nil {
		return pin, fmt.Errorf("%w: it is not of the form berth-enrol-v1.<secret>.<fingerprint>", ErrToken)
	}
	b, err := hex.DecodeString(m[1])
	if err != nil {
		return pin, fmt.Errorf("%w: %w", ErrToken, err)
	}
	return fingerprint(b), nil
}
