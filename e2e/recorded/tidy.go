package recorded

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
)

var uuidRE = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// ageRE matches a time of less than an hour in a table.
var ageRE = regexp.MustCompile(`^(\d+m)?(\d+s)?$`)

// normal replaces what differs from run to run inside a string.
func normal(s string, vars map[string]string) string {
	names := slices.Collect(maps.Keys(vars))
	// Longer values first, so that one is not cut out of another.
	sort.Slice(names, func(i, j int) bool {
		if len(vars[names[i]]) != len(vars[names[j]]) {
			return len(vars[names[i]]) > len(vars[names[j]])
		}
		return names[i] < names[j]
	})
	for _, k := range names {
		if k != "ns" && len(vars[k]) > 3 {
			s = strings.ReplaceAll(s, vars[k], "<"+k+">")
		}
	}
	return uuidRE.ReplaceAllString(s, "<uid>")
}

var timeFields = map[string]bool{
	"creationTimestamp": true, "deletionTimestamp": true, "time": true, "lastTransitionTime": true,
	"lastProbeTime": true, "lastUpdateTime": true, "lastHeartbeatTime": true, "firstTimestamp": true,
	"lastTimestamp": true, "expirationTimestamp": true, "timeAdded": true, "startTime": true,
}

// tidy brings a body into the normal form. It changes v.
func tidy(v any, vars map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		tidyKeys(v)
		generate, _ := v["generateName"].(string)
		for k, e := range v {
			switch s, isString := e.(string); {
			case k == "resourceVersion" && isString && s != "" && s != "0":
				v[k] = "<rv>"
			case k == "continue" && isString && s != "":
				v[k] = "<continue>"
			case timeFields[k] && isString && s != "":
				v[k] = "<time>"
			case k == "clusterIP" && isString && s != "" && s != "None":
				v[k] = "<ip>"
			case k == "clusterIPs":
				if l, ok := e.([]any); ok {
					for i := range l {
						if l[i] != "None" {
							l[i] = "<ip>"
						}
					}
				}
			case k == "nodePort" || k == "healthCheckNodePort":
				v[k] = "<port>"
			case k == "name" && generate != "" && isString && strings.HasPrefix(s, generate) && s != generate:
				v[k] = generate + "<random>"
			case k == "cells": // ages grow on a busy machine
				if l, ok := e.([]any); ok {
					for i := range l {
						if s, ok := l[i].(string); ok && s != "" && ageRE.MatchString(s) {
							l[i] = "<age>"
						}
					}
				}
				v[k] = tidy(e, vars)
			case k == "managedFields":
				if l, ok := e.([]any); ok {
					v[k] = sorted(tidy(l, vars).([]any), managerKey)
				}
			case k == "causes":
				if l, ok := e.([]any); ok {
					v[k] = sorted(tidy(l, vars).([]any), brief)
				}
			default:
				v[k] = tidy(e, vars)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = tidy(v[i], vars)
		}
		return v
	case string:
		return normal(v, vars)
	}
	return v
}

// tidyKeys replaces uids in keys: owners are known by uid in managedFields.
func tidyKeys(m map[string]any) {
	var found []string
	for k := range m {
		if len(k) > 36 && uuidRE.MatchString(k) {
			found = append(found, k)
		}
	}
	for _, k := range found {
		e := m[k]
		delete(m, k)
		m[uuidRE.ReplaceAllString(k, "<uid>")] = e
	}
}

func managerKey(v any) string {
	m, _ := v.(map[string]any)
	return fmt.Sprint(m["manager"], "|", m["operation"], "|", m["apiVersion"], "|", m["subresource"])
}

func sorted(l []any, key func(any) string) []any {
	sort.SliceStable(l, func(i, j int) bool { return key(l[i]) < key(l[j]) })
	return l
}
