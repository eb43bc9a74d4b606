package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// sealedPrefix begins every value that a stock server encrypted.
const sealedPrefix = "k8s:enc:"

// open decrypts a value, where it is encrypted.
func (r *Reader) open(ctx context.Context, e foreign.Entry) ([]byte, error) {
	if !bytes.HasPrefix(e.Value, []byte(sealedPrefix)) {
		return e.Value, nil
	}
	if r.options.Opener == nil {
		return nil, fmt.Errorf("it is encrypted (%s), and --encryption-provider-config is not given", sealedBy(e.Value))
	}
	return r.options.Opener.Open(ctx, e.Key, e.Value)
}

// sealedBy returns the provider that a value names, in words that can be shown.
func sealedBy(value []byte) string {
	rest := value[len(sealedPrefix):]
	name, _, ok := bytes.Cut(rest[:min(len(rest), 32)], []byte{':'})
	if !ok || strings.Trim(string(name), "abcdefghijklmnopqrstuvwxyz") != "" {
		return "by a provider that is not known"
	}
	return string(name)
}

func isProtobuf(value []byte) bool { return bytes.HasPrefix(value, []byte(protobuf.Prefix)) }

func isJSON(value []byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && value[0] == '{'
}

// decode makes the working form, with its defaults, of a value of a built-in kind: a stock
// server fills them in too whenever it reads.
// Fields that no type here has would be lost: unknown names the first of them.
func (l *layout) decode(home *kinds.Resource, value []byte) (obj kinds.Object, unknown []string, err error) {
	var codec codecs.Codec
	switch {
	case isProtobuf(value):
		codec = l.protobuf
	case isJSON(value):
		codec = l.json
	default:
		return nil, nil, errors.New("its value is neither Protobuf nor JSON")
	}
	kind, err := codec.Kind(value)
	if err != nil {
		return nil, nil, err
	}
	from, err := l.version(home, kind)
	if err != nil {
		return nil, nil, err
	}
	if from == nil {
		if value, from, unknown, err = l.raise(home, kind, codec, value); err != nil {
			return nil, nil, err
		}
		codec = l.json
	}
	obj = from.New()
	more, err := l.read(codec, value, obj)
	if err != nil {
		return nil, nil, err
	}
	if obj, err = from.ToWorking(obj); err != nil {
		return nil, nil, fmt.Errorf("converting from %s: %w", kind.GroupVersion(), err)
	}
	obj.GetObjectKind().SetGroupVersionKind(home.Storage.GVK)
	if d := home.Storage.Default; d != nil {
		d(obj)
	}
	return obj, append(unknown, more...), nil
}

// read decodes a value, and names the first fields of it that obj does not have.
func (l *layout) read(codec codecs.Codec, value []byte, obj runtime.Object) (unknown []string, err error) {
	unknown, err = codec.Decode(value, obj, codecs.Warn)
	if err == nil && isProtobuf(value) {
		unknown = l.protobuf.Unknown(value, obj)
		for i, field := range unknown {
			unknown[i] = "unknown field " + shown(field)
		}
	}
	return unknown[:min(len(unknown), maxUnknown)], err
}

// version returns the resource that serves a kind in the version of the value; nil if that may be a version of the
// past.
func (l *layout) version(home *kinds.Resource, kind schema.GroupVersionKind) (*kinds.Resource, error) {
	if kind == home.Storage.GVK {
		return home, nil
	}
	if r := l.catalogue.LookupKind(kind); r != nil {
		if r.Storage == nil || r.Storage.Key != home.Storage.Key {
			return nil, misplaced(home, kind)
		}
		return r, nil
	}
	return nil, nil
}

func misplaced(home *kinds.Resource, kind schema.GroupVersionKind) error {
	return fmt.Errorf("it is a %s of %s, in the place of a %s of %s", shown(kind.Kind), shown(kind.GroupVersion().String()), home.Storage.GVK.Kind, home.Storage.GVK.GroupVersion())
}

// shown returns a name from a value, in a form that messages may quote.
func shown(name string) string {
	const most = 64
	if len(name) > most {
		name = name[:most] + "…"
	}
	return fmt.Sprintf("%q", name)
}
