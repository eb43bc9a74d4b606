package resource

import (
	"fmt"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// requestPolicy checks how much of a capacity one claim may have.
func requestPolicy(capacity apiresource.Quantity, r *resourceapi.CapacityRequestPolicy, p *field.Path) field.ErrorList {
	switch values := len(r.ValidValues) > 0; {
	case values && r.ValidRange != nil:
		return field.ErrorList{field.Forbidden(p, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case values && r.Default == nil:
		return field.ErrorList{field.Required(p.Child("default"), "required when validValues is defined")}
	case values:
		return validValues(capacity, *r.Default, r.ValidValues, p.Child("validValues"))
	case r.ValidRange != nil && r.Default == nil:
		return field.ErrorList{field.Required(p.Child("default"), "required when validRange is defined")}
	case r.ValidRange != nil:
		return validRange(capacity, *r.Default, r.ValidRange, p.Child("validRange"))
	}
	return nil
}

func validValues(capacity, usual apiresource.Quantity, values []apiresource.Quantity, p *field.Path) field.ErrorList {
	const most = 10 // CapacityRequestPolicyDiscreteMaxOptions of the internal types
	var errs field.ErrorList
	for i := 1; i < len(values); i++ {
		errs = rules.InvalidIf(errs, values[i-1].Cmp(values[i]) > 0, p.Index(i), values[i].String(), "values must be sorted in ascending order")
	}
	found := false
	if len(values) > most {
		errs = append(errs, field.TooMany(p, len(values), most))
	} else {
		for i := range values {
			errs = rules.InvalidIf(errs, values[i].Cmp(capacity) > 0, p.Index(i), values[i].String(), "option is larger than capacity value: "+capacity.String())
			found = found || values[i].Cmp(usual) == 0
		}
		errs = append(errs, repeated(values, func(q *apiresource.Quantity) string { return strconv.FormatInt(q.Value(), 10) }, p, "")...)
	}
	return rules.InvalidIf(errs, !found, p, usual.String(), "default value is not valid according to the requestPolicy")
}

func validRange(capacity, usual apiresource.Quantity, r *resourceapi.CapacityRequestPolicyRange, p *field.Path) field.ErrorList {
	least, most, step := p.Child("min"), p.Child("max"), p.Child("step")
	if r.Min == nil {
		return field.ErrorList{field.Required(least, "required when validRange is defined")}
	}
	var errs field.ErrorList
	more := func(a, b apiresource.Quantity, p *field.Path, shown apiresource.Quantity, format string, than apiresource.Quantity) {
		errs = rules.InvalidIf(errs, a.Cmp(b) > 0, p, shown.String(), fmt.Sprintf(format, than.String()))
	}
	more(*r.Min, capacity, least, *r.Min, "min is larger than capacity value: %s", capacity)
	more(*r.Min, usual, least, usual, "default is less than min: %s", *r.Min)
	if r.Max != nil {
		more(*r.Min, *r.Max, most, *r.Min, "min is larger than max: %s", *r.Max)
		more(*r.Max, capacity, most, *r.Max, "max is larger than capacity value: %s", capacity)
		more(usual, *r.Max, most, usual, "default is more than max: %s", *r.Max)
	}
	if r.Step == nil {
		return errs
	}
	next := r.Min.DeepCopy()
	next.Add(*r.Step)
	more(next, capacity, step, *r.Step, "one step "+next.String()+" is larger than capacity value: %s", capacity)
	multiple := func(q apiresource.Quantity) {
		by := r.Step.Value()
		errs = rules.InvalidIf(errs, by == 0 || (q.Value()-r.Min.Value())%by != 0, step, q.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", r.Step, r.Min))
	}
	multiple(usual)
	if r.Max != nil {
		multiple(*r.Max)
	}
	return errs
}
