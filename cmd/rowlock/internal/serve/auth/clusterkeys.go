package auth

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/sqlstore"
)

// keysNote is the name of the database's note on the keys of the cluster.
const keysNote = "keys"

// ClusterKeys are fingerprints of the public keys that the servers of a cluster must share so that each accepts
// the clients of the others.
type ClusterKeys struct {
	Authorities []string `json:"authorities,omitempty"` // of client certificates that are accepted
	Tokens      []string `json:"tokens,omitempty"`      // of service account tokens, the signing key first; none if another process signs
}

// fingerprints returns the fingerprints of the authorities in PEM files. They depend on the key alone, so a renewed
// certificate has the same one.
func fingerprints(paths ...string) (list []string, err error) {
	for _, path := range paths {
		if path == "" {
			continue
		}
		certs, err := clientcert.LoadAuthorities(path)
		if err != nil {
			return nil, err
		}
		for _, c := range certs {
			if print := fingerprint(c); !slices.Contains(list, print) {
				list = append(list, print)
			}
		}
	}
	return list, nil
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// difference returns the reason why servers with the keys from would refuse this server's clients; "" if they would
// not.
func (k *ClusterKeys) difference(from *ClusterKeys) string {
	common := func(a []string, b ...string) bool {
		return slices.ContainsFunc(b, func(s string) bool { return slices.Contains(a, s) })
	}
	switch {
	case len(k.Authorities) > 0 && len(from.Authorities) > 0 && !common(k.Authorities, from.Authorities...):
		return fmt.Sprintf("its certificate authority (key %.12s) is not theirs (%.12s)", k.Authorities[0], from.Authorities[0])
	case len(k.Tokens) > 0 && len(from.Tokens) > 0 && !common(k.Tokens, from.Tokens[0]) && !common(from.Tokens, k.Tokens[0]):
		return fmt.Sprintf("its key of service account tokens (%.12s) is not theirs (%.12s)", k.Tokens[0], from.Tokens[0])
	}
	return ""
}

// keysError: the other servers of the database have other keys.
type keysError struct{ differs, dir string }

func (e *keysError) Error() string {
	return fmt.Sprintf("this server has other keys than the servers that the database knows: %s, so that certificates and tokens of one are refused by the others. "+
		"Move %s away and take the keys from the data directory of one of them: `rowlock init --data-dir %s --from THEIR-DATA-DIR`. "+
		"If their keys are lost, start once with --replace-cluster-keys: what they issued is refused from then on", e.differs, e.dir, e.dir)
}

// Agree compares the keys of this server with those in the database, and stores them there. Where servers share
// the database, other keys are refused unless replace is set. Errors: keysError; those of the driver.
func (k *ClusterKeys) Agree(ctx context.Context, d sqlstore.Driver, dir string, replace bool, log *slog.Logger) error {
	is, err := json.Marshal(k)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		was, err := d.Note(ctx, keysNote)
		if err != nil {
			return err
		}
		if was == string(is) {
			return nil
		}
		var known ClusterKeys
		if was != "" {
			if err := json.Unmarshal([]byte(was), &known); err != nil && !replace {
				return fmt.Errorf("the row note:keys of kv_meta, which has the fingerprints of the cluster's keys, cannot be read: %w; to store those of this server in its place, start once with --replace-cluster-keys", err)
			} else if err != nil {
				known = ClusterKeys{}
				log.Warn("the row note:keys of kv_meta cannot be read: the fingerprints of this server's keys take its place", "error", err)
			}
		}
		if differs := k.difference(&known); differs != "" {
			if !replace {
				return &keysError{differs, dir}
			}
			log.Warn("the keys of this server take the place of those that the database knew: certificates and tokens of these are refused", "differs", differs)
		}
		ok, err := d.SetNote(ctx, keysNote, was, string(is))
		if err != nil && ctx.Err() == nil { // reads are served even if the database refuses writes at present
			log.Warn("the fingerprints of this server's keys could not be stored: a server with other keys will not be noticed", "error", err)
			return nil
		}
		if err != nil || ok {
			return err
		}
	}
	return errors.Join(ctx.Err(), errors.New("comparing the keys of the cluster"))
}
