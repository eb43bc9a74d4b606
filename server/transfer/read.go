package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// Opener decrypts values of a stock server.
type Opener interface {
	// Open decrypts the value of a key of etcd. Errors reveal nothing of it.
	Open(ctx context.Context, key string, stored []byte) ([]byte, error)
}

// Options of a Reader.
type Options struct {
	Prefix string    // of the keys; "": DefaultPrefix
	Opener Opener    // nil: values that are encrypted cannot be read
	Events bool      // events are taken along
	Now    time.Time // when the rows are written
}

// Disposition is the decision on an entry.
type Disposition uint8

const (
	Taken   Disposition = iota + 1 // it is a row now
	Left                           // it is left out, for the reason in Why
	Damaged                        // it should be a row, and cannot be read: see Err
)

// Outcome is the result for one entry.
type Outcome struct {
	Disposition Disposition
	Key         sqlstore.Key // of the object, where the key of the entry names one
	Why         string
	Err         error
	Row         sqlstore.Row // its value is the Outcome's own
	// Unknown are the first fields of its value that no type here has, which are lost.
	Unknown []string
	Claims  []sqlstore.Row // rows that go with it; their revisions are for the caller to give
}

// Reader makes rows of entries, and keeps count. It is for one goroutine at a time.
type Reader struct {
	*layout
	options Options
	customs customs
	report  Report
}

// NewReader makes a Reader.
func NewReader(o Options) *Reader {
	return &Reader{
		layout: newLayout(o.Prefix), options: o, report: newReport(),
		customs: customs{definitions: map[string]*apiextensionsv1.CustomResourceDefinition{}, objects: map[string]*metCustom{}},
	}
}

// Read decides on an entry, and counts it in the report. An error ends the work: it is that of ctx, or of a
// key management service that does not answer.
func (r *Reader) Read(ctx context.Context, e foreign.Entry) (Outcome, error) {
	out := r.read(ctx, e)
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	if out.Disposition == Damaged && errors.Is(out.Err, sqlstore.ErrKeyUnavailable) {
		return Outcome{}, fmt.Errorf("%s: %w", foreign.Shown(e.Key), out.Err)
	}
	r.report.count(e.Key, &out)
	return out, nil
}

func (r *Reader) read(ctx context.Context, e foreign.Entry) Outcome {
	path, below := r.path(e.Key)
	if !below {
		return Outcome{Disposition: Left, Why: keptOutside(e.Key)}
	}
	if why := keptPath(path); why != "" {
		return Outcome{Disposition: Left, Why: why}
	}
	at, ok := r.locate(path)
	if !ok {
		return Outcome{Disposition: Left, Why: leftUnknown}
	}
	if why := r.keptObject(at); why != "" {
		return Outcome{Disposition: Left, Why: why, Key: at.key}
	}
	out, err := r.object(ctx, at, e)
	if err != nil {
		return Outcome{Disposition: Damaged, Key: at.key, Err: unquoted(err)}
	}
	out.Key = at.key
	return out
}

// unquoted removes quotations of a value from an error: among the errors of decoders, the text in place of a
// time.
func unquoted(err error) error {
	if parsed, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Errorf("a text of %d bytes where a time is expected", len(parsed.Value))
	}
	return err
}

// object reads the value of an object.
func (r *Reader) object(ctx context.Context, at located, e foreign.Entry) (Outcome, error) {
	if e.Unread != nil {
		return Outcome{}, e.Unread
	}
	if err := foreign.Check(e.Key, int64(len(e.Value))); err != nil {
		return Outcome{}, err
	}
	if e.ModRevision <= 0 {
		return Outcome{}, fmt.Errorf("it is of revision %d, and revisions begin with 1", e.ModRevision)
	}
	plain, err := r.open(ctx, e)
	if err != nil {
		return Outcome{}, err
	}
	row := sqlstore.Row{Key: at.key, Revision: e.ModRevision, Created: e.CreateRevision, ExpiresAt: e.ExpiresAt, WrittenAt: r.options.Now}
	if row.Created <= 0 || row.Created > row.Revision {
		row.Created = row.Revision
	}
	if at.resource == nil {
		return r.customObject(row, plain)
	}
	return r.builtin(ctx, at, row, plain)
}

// builtin makes the row of an object of a built-in kind.
func (r *Reader) builtin(ctx context.Context, at located, row sqlstore.Row, plain []byte) (Outcome, error) {
	home := at.resource
	obj, unknown, err := r.decode(home, plain)
	if err != nil {
		return Outcome{}, err
	}
	if why := keptInside(at, obj); why != "" {
		return Outcome{Disposition: Left, Why: why}, nil
	}
	if row.ExpiresAt.IsZero() {
		row.ExpiresAt = objects.Expiry(home.Storage, obj, r.options.Now)
	}
	out := Outcome{Disposition: Taken, Unknown: unknown}
	if out.Claims, err = r.claims(ctx, home, obj); err != nil {
		return Outcome{}, err
	}
	if d, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		r.customs.defined(d)
	}
	if row.Value, err = r.objects.Encode(ctx, home, obj, 0); err != nil {
		return Outcome{}, err
	}
	if row.Value, err = integrity.Read(r.json, home, &row); err != nil {
		return Outcome{}, err
	}
	out.Row = row
	return out, nil
}

// customObject makes the row of an object of a custom resource, in the version in which
// it is: the definition that is in the same store knows it.
func (r *Reader) customObject(row sqlstore.Row, plain []byte) (Outcome, error) {
	if !isJSON(plain) {
		return Outcome{Disposition: Left, Why: leftNotJSON}, nil
	}
	row.Value = bytes.Clone(bytes.TrimRight(plain, "\n"))
	value, err := integrity.Read(r.json, nil, &row)
	if err != nil {
		return Outcome{}, err
	}
	kind, err := r.json.Kind(value)
	if err != nil {
		return Outcome{}, err
	}
	if err := r.customs.met(row.Key, kind.Version); err != nil {
		return Outcome{}, err
	}
	row.Value = value
	return Outcome{Disposition: Taken, Row: row}, nil
}

// claims returns the rows of claims of an object on values that are unique in the cluster, which its deletion
// would release.
func (r *Reader) claims(ctx context.Context, home *kinds.Resource, obj kinds.Object) ([]sqlstore.Row, error) {
	if home.Storage.Allocate == nil {
		return nil, nil
	}
	_, held, err := home.Storage.Allocate.Plan(ctx, nil, obj, nil, true)
	if err != nil {
		return nil, err
	}
	owner := obj.GetNamespace() + "/" + obj.GetName()
	var rows []sqlstore.Row
	for i := range held {
		if held[i].Pool == home.Storage.ClaimsIn {
			continue // an object of its own, which is in the source too
		}
		rows = append(rows, sqlstore.Row{Key: objects.ClaimKey(home.Storage, &held[i]), Value: kinds.ClaimValue(owner), WrittenAt: r.options.Now})
	}
	return rows, nil
}
