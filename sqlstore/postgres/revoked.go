package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// revocations are lists of revoked certificates by the name of their issuer.
type revocations map[string][]*x509.RevocationList

// readRevoked reads the lists of a file, and of all files of a folder; nil where
// neither is named.
func readRevoked(file, folder string) (revocations, error) {
	if file == "" && folder == "" {
		return nil, nil
	}
	var files []string
	if file != "" {
		files = append(files, file)
	}
	if folder != "" {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("sslcrldir: %w", err)
		}
		for _, e := range entries {
			if path := filepath.Join(folder, e.Name()); !e.IsDir() {
				files = append(files, path)
			}
		}
	}
	found := make(revocations)
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("sslcrl: %w", err)
		}
		if err := found.add(data); err != nil {
			return nil, fmt.Errorf("sslcrl: %s: %w", path, err)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("sslcrl, sslcrldir: there is no list of revoked certificates")
	}
	return found, nil
}

func (r revocations) add(data []byte) error {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return err
		}
		issuer := string(list.RawIssuer)
		r[issuer] = append(r[issuer], list)
	}
	return nil
}

// verify refuses the server's certificates if an issuer has revoked one, or has no
// valid list.
func (r revocations) verify(state tls.ConnectionState) error {
	for i, cert := range state.PeerCertificates {
		if i > 0 && string(cert.RawIssuer) == string(cert.RawSubject) {
			continue // a root, which only itself could revoke
		}
		if err := r.check(cert); err != nil {
			return err
		}
	}
	return nil
}

func (r revocations) check(cert *x509.Certificate) error {
	known := false
	for _, list := range r[string(cert.RawIssuer)] {
		if time.Now().After(list.NextUpdate) && !list.NextUpdate.IsZero() {
			continue
		}
		known = true
		for _, entry := range list.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(cert.SerialNumber) == 0 {
				return fmt.Errorf("the certificate of %s is revoked", cert.Subject)
			}
		}
	}
	if !known {
		return fmt.Errorf("no list of revoked certificates of %s is valid now", cert.Issuer)
	}
	return nil
}
