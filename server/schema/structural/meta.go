package structural

import (
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
)

// coerceMeta brings the metadata of an object to what ObjectMeta holds; without lenient
// it fails for what has the wrong type.
func coerceMeta(obj map[string]any, track, lenient bool) (unknown []string, err error) {
	before, has := obj["metadata"]
	if !has {
		return nil, nil
	}
	if m, ok := before.(map[string]any); ok && plainMeta(m) {
		if _, ok := m["generation"]; !ok && lenient {
			m["generation"] = int64(1)
		}
		if _, ok := m["creationTimestamp"]; !ok {
			m["creationTimestamp"] = nil // as it is written of an ObjectMeta
		}
		return nil, nil
	}
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{
		DropMalformedFields: lenient, ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	if lenient && meta.Generation == 0 {
		meta.Generation = 1
	}
	return unknown, objectmeta.SetObjectMeta(obj, meta)
}

// The kinds of fields that metadata has.
const (
	metaString = 1 + iota
	metaNumber
	metaFlag
	metaTime
	metaStrings // by name
	metaList    // of strings
	metaOwners
	metaManaged
	metaFields
)

var (
	metaKnown = map[string]int{
		"name": metaString, "generateName": metaString, "namespace": metaString, "selfLink": metaString, "uid": metaString,
		"resourceVersion": metaString, "generation": metaNumber, "creationTimestamp": metaTime, "deletionTimestamp": metaTime,
		"deletionGracePeriodSeconds": metaNumber, "labels": metaStrings, "annotations": metaStrings, "ownerReferences": metaOwners,
		"finalizers": metaList, "managedFields": metaManaged,
	}
	ownerKnown = map[string]int{
		"apiVersion": metaString, "kind": metaString, "name": metaString, "uid": metaString, "controller": metaFlag, "blockOwnerDeletion": metaFlag,
	}
	managedKnown = map[string]int{
		"manager": metaString, "operation": metaString, "apiVersion": metaString, "time": metaTime, "fieldsType": metaString,
		"fieldsV1": metaFields, "subresource": metaString,
	}
)

// plainMeta says that an ObjectMeta read from m would be written as m, but for what is
// always written. Its no is not certain.
func plainMeta(m map[string]any) bool { return plainFields(m, metaKnown) }

func plainFields(m map[string]any, known map[string]int) bool {
	for name, v := range m {
		if !plainField(known[name], v) {
			return false
		}
	}
	return true
}

func plainField(kind int, v any) bool {
	switch kind {
	case metaString:
		s, ok := v.(string)
		return ok && s != ""
	case metaNumber:
		n, ok := v.(int64)
		return ok && n != 0
	case metaFlag:
		_, ok := v.(bool)
		return ok
	case metaTime:
		return plainTime(v)
	case metaStrings:
		m, ok := v.(map[string]any)
		for _, s := range m {
			if _, isString := s.(string); !isString {
				return false
			}
		}
		return ok && len(m) > 0
	case metaList:
		list, ok := v.([]any)
		for _, s := range list {
			if _, isString := s.(string); !isString {
				return false
			}
		}
		return ok && len(list) > 0
	case metaOwners:
		return plainList(v, ownerKnown, "apiVersion", "kind", "name", "uid")
	case metaManaged:
		return plainList(v, managedKnown)
	case metaFields:
		m, ok := v.(map[string]any)
		return ok && plainTree(m)
	}
	return false
}

// plainList checks a list of objects, which all have certain fields.
func plainList(v any, known map[string]int, always ...string) bool {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return false
	}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok || !plainFields(m, known) {
			return false
		}
		for _, name := range always {
			if _, ok := m[name]; !ok {
				return false
			}
		}
	}
	return true
}

// plainTime takes the form in which times are written, and no other.
func plainTime(v any) bool {
	s, ok := v.(string)
	if !ok || len(s) != len("2006-01-02T15:04:05Z") || s[len(s)-1] != 'Z' {
		return false
	}
	t, err := time.Parse(time.RFC3339, s)
	return err == nil && !t.IsZero()
}

// plainTree checks the fields of a manager, which are nothing but objects.
func plainTree(m map[string]any) bool {
	for _, v := range m {
		below, ok := v.(map[string]any)
		if !ok || !plainTree(below) {
			return false
		}
	}
	return true
}
