package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// serviceAccountKey writes a new private key as PEM to stdout: kube-apiserver and
// kube-controller-manager sign service-account tokens with it, and nothing else that the tests may
// count on being installed makes one.
func serviceAccountKey() int {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fmt.Fprintf(os.Stderr, "service-account-key: %v\n", err)
		return 1
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		fmt.Fprintf(os.Stderr, "service-account-key: %v\n", err)
		return 1
	}
	if err := pem.Encode(os.Stdout, &pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}); err != nil {
		fmt.Fprintf(os.Stderr, "service-account-key: %v\n", err)
		return 1
	}
	return 0
}
