package rules

import (
	"iter"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RequiredIf appends that a value is required if it is missing.
func RequiredIf(errs field.ErrorList, missing bool, path *field.Path, detail string) field.ErrorList {
	if missing {
		return append(errs, field.Required(path, detail))
	}
	return errs
}

// RequiredThen reports that a value is required if it is empty, and otherwise checks it.
func RequiredThen[T ~string](value T, path *field.Path, detail string, check func(T, *field.Path) field.ErrorList) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, detail)}
	}
	return check(value, path)
}

// ForbiddenIf appends that a value is forbidden if it is set where it may not be.
func ForbiddenIf(errs field.ErrorList, set bool, path *field.Path, detail string) field.ErrorList {
	if set {
		return append(errs, field.Forbidden(path, detail))
	}
	return errs
}

// InvalidIf appends that a value is invalid if it is.
func InvalidIf[T any](errs field.ErrorList, invalid bool, path *field.Path, value T, detail string) field.ErrorList {
	if invalid {
		return append(errs, field.Invalid(path, value, detail))
	}
	return errs
}

// DuplicateIf appends that a value is a duplicate if it is.
func DuplicateIf[T any](errs field.ErrorList, again bool, path *field.Path, value T) field.ErrorList {
	if again {
		return append(errs, field.Duplicate(path, value))
	}
	return errs
}

// Optional checks a value unless it is absent.
func Optional[T any](value *T, path *field.Path, check func(T, *field.Path) field.ErrorList) field.ErrorList {
	if value == nil {
		return nil
	}
	return check(*value, path)
}

// OptionalPtr is Optional for a check of a pointer.
func OptionalPtr[T any](value *T, path *field.Path, check func(*T, *field.Path) field.ErrorList) field.ErrorList {
	if value == nil {
		return nil
	}
	return check(value, path)
}

// Each checks the items of a list.
func Each[T any](list []T, path *field.Path, check func(T, *field.Path) field.ErrorList) field.ErrorList {
	return EachPtr(list, path, func(item *T, at *field.Path) field.ErrorList { return check(*item, at) })
}

// EachPtr is Each for a check of a pointer. It stops after as many errors as an answer contains.
func EachPtr[T any](list []T, path *field.Path, check func(*T, *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i := range Until(&errs, list) {
		errs = append(errs, check(&list[i], path.Index(i))...)
	}
	return errs
}

// Until yields the items of a list until there are as many errors as an answer contains.
func Until[S ~[]T, T any](errs *field.ErrorList, list S) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i := range list {
			if len(*errs) > MaxErrors || !yield(i, list[i]) {
				return
			}
		}
	}
}
