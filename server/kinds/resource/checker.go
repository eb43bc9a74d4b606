package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celtypes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/rowlock/rowlock/authx/meter"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// checker checks one object. It compiles each expression once for new objects and once
// for stored ones.
type checker struct {
	*validator
	ctx      context.Context
	compiled map[expression]*field.Error
	bytes    int // of compiled expressions
}

// maxExpressions bounds the bytes of different expressions in one object. A stock server
// has no such bound: a body full of expressions keeps a processor busy for half a minute.
const maxExpressions = 256 << 10

type expression struct {
	text   string
	stored bool
}

func (b *validator) checker(ctx context.Context) *checker {
	return &checker{validator: b, ctx: ctx, compiled: map[expression]*field.Error{}}
}

// selectors checks expressions that select devices. stored means that they were accepted
// before, perhaps by a newer server.
func (c *checker) selectors(list []resourceapi.DeviceSelector, p *field.Path, stored bool) field.ErrorList {
	return each(c.validator, list, resourceapi.DeviceSelectorsMaxSize, p, func(s *resourceapi.DeviceSelector, p *field.Path) field.ErrorList {
		p = p.Child("cel")
		if s.CEL == nil {
			return field.ErrorList{field.Required(p, "")}
		}
		key := expression{s.CEL.Expression, stored}
		fault, ok := c.compiled[key]
		if !ok {
			fault = c.compile(key)
			c.compiled[key] = fault
		}
		if fault == nil {
			return nil
		}
		here := *fault
		here.Field = p.Child("expression").String()
		return field.ErrorList{&here}
	})
}

// compile returns why an expression is invalid, in an error without a path.
func (c *checker) compile(e expression) *field.Error {
	if len(e.text) > resourceapi.CELSelectorExpressionMaxLength {
		return field.TooLong(nil, "", resourceapi.CELSelectorExpressionMaxLength)
	}
	if err := c.ctx.Err(); err != nil {
		return field.InternalError(nil, fmt.Errorf("the request ended before its expressions were compiled: %w", err))
	}
	if c.bytes += len(e.text); c.bytes > maxExpressions {
		return field.Forbidden(nil, fmt.Sprintf("too complex, the expressions of one object may have %d bytes together", maxExpressions))
	}
	if err := meter.Vet(e.text); err != nil {
		return field.Invalid(nil, e.text, "compilation failed: "+meter.Abridge(err.Error()))
	}
	kind := environment.NewExpressions
	if e.stored {
		kind = environment.StoredExpressions
	}
	known, err := c.environment()
	if err != nil {
		return field.InternalError(nil, err)
	}
	cost, fault := known.compile(e.text, kind)
	switch {
	case fault == nil && cost > resourceapi.CELSelectorExpressionMaxCost:
		return field.Forbidden(nil, "too complex, exceeds cost limit")
	case fault == nil:
		return nil
	case fault.Type == celtypes.ErrorTypeInvalid:
		return field.Invalid(nil, e.text, fault.Detail)
	}
	return field.InternalError(nil, fault)
}

// configuration checks the opaque parameters for a driver.
func (b *validator) configuration(c *resourceapi.DeviceConfiguration, p *field.Path, stored bool) field.ErrorList {
	p = p.Child("opaque")
	if c.Opaque == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	errs := b.driverName(c.Opaque.Driver, p.Child("driver"))
	return append(errs, b.jsonObject(c.Opaque.Parameters, p.Child("parameters"), stored)...)
}

// jsonObject checks opaque data. Stored data may be longer, because there was no limit once.
func (b *validator) jsonObject(data runtime.RawExtension, p *field.Path, stored bool) field.ErrorList {
	if len(data.Raw) == 0 {
		return field.ErrorList{field.Required(p, "")}
	}
	if !stored && len(data.Raw) > resourceapi.OpaqueParametersMaxLength {
		return field.ErrorList{field.TooLong(p, "", resourceapi.OpaqueParametersMaxLength)}
	}
	const omitted = "<value omitted>"
	var object map[string]json.RawMessage
	err := json.Unmarshal(data.Raw, &object)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return field.ErrorList{field.Invalid(p, omitted, b.either("must be a valid JSON object", "parameters must be a valid JSON object"))}
	case err != nil:
		return field.ErrorList{field.Invalid(p, omitted, "error parsing data as JSON: "+err.Error())}
	case object == nil:
		return field.ErrorList{field.Required(p, "")}
	}
	return nil
}

// driverName checks the name of a driver. A missing one has a second error before release 1.33.
func (b *validator) driverName(name string, p *field.Path) field.ErrorList {
	if name == "" && b.later {
		return field.ErrorList{field.Required(p, "")}
	}
	return rules.DriverName(name, p)
}

// qualifiedName checks the name of an attribute or a capacity, which may have a domain.
// Names with more parts are let pass: no device has one.
func (b *validator) qualifiedName(name string, p *field.Path) field.ErrorList {
	if name == "" && !b.later {
		return field.ErrorList{field.Required(p, "name required")}
	}
	parts := strings.Split(name, "/")
	switch len(parts) {
	case 1:
		return b.identifier(name, p)
	case 2:
		var errs field.ErrorList
		if parts[0] == "" {
			errs = append(errs, b.missing(p, "the domain must not be empty"))
		} else {
			errs = append(errs, b.driverName(parts[0], p)...)
		}
		if parts[1] == "" {
			return append(errs, b.missing(p, "the name must not be empty"))
		}
		return append(errs, b.identifier(parts[1], p)...)
	}
	return nil
}

func (b *validator) identifier(id string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(id) > resourceapi.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(p, "", resourceapi.DeviceMaxIDLength))
	}
	for _, m := range validation.IsCIdentifier(id) {
		if b.later {
			errs = append(errs, field.Invalid(p, id, m))
		} else {
			errs = append(errs, field.TypeInvalid(p, id, m))
		}
	}
	return errs
}

// poolName checks subdomains with slashes between them.
func poolName(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	if len(name) > resourceapi.PoolNameMaxLength {
		errs = append(errs, field.TooLong(p, "", resourceapi.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		if errs = append(errs, rules.Subdomain(part, p)...); len(errs) > rules.MaxErrors {
			break
		}
	}
	return errs
}

// each checks all of a list, and how long it is where most is not negative. Items of a list that is too long are
// checked only before release 1.33.
func each[T any](b *validator, list []T, most int, p *field.Path, check func(*T, *field.Path) field.ErrorList) field.ErrorList {
	long := most >= 0 && len(list) > most
	if long && b.later {
		return field.ErrorList{field.TooMany(p, len(list), most)}
	}
	errs := rules.EachPtr(list, p, check)
	if long {
		errs = append(errs, field.TooMany(p, len(list), most))
	}
	return errs
}

// set is each for a list with unique keys. child is the field of a key, which errors name before release
// 1.33; "" if that is the item.
func set[T any, K comparable](b *validator, list []T, most int, key func(*T) K, p *field.Path, child string, check func(*T, *field.Path) field.ErrorList) field.ErrorList {
	errs := each(b, list, most, p, check)
	if b.later {
		child = ""
		if most >= 0 && len(list) > most {
			return errs
		}
	}
	return append(errs, repeated(list, key, p, child)...)
}

// repeated finds duplicate keys in a list.
func repeated[T any, K comparable](list []T, key func(*T) K, p *field.Path, child string) field.ErrorList {
	var errs field.ErrorList
	seen := rules.Seen[K]{}
	for i := range rules.Until(&errs, list) {
		k, at := key(&list[i]), p.Index(i)
		if child != "" {
			at = at.Child(child)
		}
		errs = rules.DuplicateIf(errs, seen.Again(k), at, k)
	}
	return errs
}
