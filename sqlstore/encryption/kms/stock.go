package kms

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
)

// stockObject is the value that a stock server stores after the name of its provider, a message of five
// fields: the value, the key of the plugin, the encrypted data key, its annotations, and whether the data key
// is a seed.
type stockObject struct {
	wrapped
	sealed []byte
	seed   bool
}

// OpenStock decrypts a value that a stock server stored with this provider; bound is the key of etcd. It
// calls the plugin for an unknown data key, once for all concurrent callers.
func (p *V2) OpenStock(ctx context.Context, stored, bound []byte) ([]byte, error) {
	o, err := readStock(stored)
	if err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	before := o.append([]byte{'s', 0}) // no data key of ours begins so: theirs are of another kind
	if o.seed {
		before[1] = 1
	}
	key, err := p.stockKey(ctx, before, o, bound)
	if err != nil {
		return nil, err
	}
	return key.Open(o.sealed, bound)
}

// stockKey finds a data key in memory or asks the plugin; it is kept if it opens the value.
func (p *V2) stockKey(ctx context.Context, before []byte, o *stockObject, bound []byte) (keys.Key, error) {
	mark := fingerprint(before)
	if known, ok := p.known.Get(mark); ok {
		return known.(*opener).key, nil
	}
	found, err := p.opening.do(ctx, string(mark[:]), func(ctx context.Context) (*opener, error) {
		secret, err := p.decrypt(ctx, &o.wrapped)
		if err != nil {
			return nil, err
		}
		use := keys.Once
		if o.seed {
			use = keys.FromSeed
		}
		key, err := use(secret)
		if err != nil {
			return nil, fmt.Errorf("the plugin returned an invalid data key: %w", err)
		}
		found := &opener{keyID: o.keyID, key: key, uses: p.uses(fromStorage, o.keyID)}
		if _, err := key.Open(o.sealed, bound); err == nil {
			p.remember(before, found)
		}
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return found.key, nil
}

var errStock = errors.New("the stored bytes are not those of a KMS provider of version 2")

// readStock reads the message. Unknown fields are refused: they could
// affect how the value is encrypted.
func readStock(b []byte) (*stockObject, error) {
	o := &stockObject{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, errStock
		}
		b = b[n:]
		if number == 5 && kind == protowire.VarintType {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 || v > 1 {
				return nil, errStock
			}
			o.seed, b = v == 1, b[n:]
			continue
		}
		if kind != protowire.BytesType {
			return nil, errStock
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return nil, errStock
		}
		b = b[n:]
		switch number {
		case 1:
			o.sealed = v
		case 2:
			o.keyID = string(v)
		case 3:
			o.dataKey = v
		case 4:
			if err := o.annotate(v); err != nil {
				return nil, err
			}
		default:
			return nil, errStock
		}
	}
	return o, nil
}

// annotate reads one entry of the map of annotations.
func (o *stockObject) annotate(b []byte) error {
	var name string
	var value []byte
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.BytesType {
			return errStock
		}
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return errStock
		}
		b = b[n+m:]
		switch number {
		case 1:
			name = string(v)
		case 2:
			value = v
		default:
			return errStock
		}
	}
	if o.annotations == nil {
		o.annotations = map[string][]byte{}
	}
	if len(o.annotations) > maxAnnotations/2 {
		return errStock
	}
	o.annotations[name] = value
	return nil
}
