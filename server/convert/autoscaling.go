package convert

import "fmt"

// metricsUp gives the sources of metrics their targets as objects.
func metricsUp(o Object) error {
	if spec := sub(o, "spec"); spec != nil {
		each(spec, "metrics", func(m Object) { metricUp(m, "target", "target") })
	}
	if status := sub(o, "status"); status != nil {
		each(status, "currentMetrics", func(m Object) { metricUp(m, "current", "current") })
	}
	return nil
}

func metricUp(m Object, field, prefix string) {
	for _, kind := range []string{"resource", "containerResource"} {
		if s := sub(m, kind); s != nil {
			target := Object{}
			move(s, prefix+"AverageUtilization", target, "averageUtilization")
			move(s, prefix+"AverageValue", target, "averageValue")
			typed(target, field)
			s[field] = target
		}
	}
	if s := sub(m, "pods"); s != nil {
		metric, target := Object{}, Object{}
		move(s, "metricName", metric, "name")
		move(s, "selector", metric, "selector")
		move(s, prefix+"AverageValue", target, "averageValue")
		typed(target, field)
		s["metric"], s[field] = metric, target
	}
	if s := sub(m, "object"); s != nil {
		metric, target := Object{}, Object{}
		described := s["target"]
		delete(s, "target")
		move(s, "metricName", metric, "name")
		move(s, "selector", metric, "selector")
		move(s, prefix+"Value", target, "value")
		move(s, "averageValue", target, "averageValue")
		if target["averageValue"] != nil && field == "target" {
			delete(target, "value") // only the average counts
		}
		typed(target, field)
		s["describedObject"], s["metric"], s[field] = described, metric, target
	}
	if s := sub(m, "external"); s != nil {
		metric, target := Object{}, Object{}
		move(s, "metricName", metric, "name")
		move(s, "metricSelector", metric, "selector")
		move(s, prefix+"Value", target, "value")
		move(s, prefix+"AverageValue", target, "averageValue")
		typed(target, field)
		s["metric"], s[field] = metric, target
	}
}

// typed sets the type of a metric target by the value that it has.
func typed(target Object, field string) {
	if field != "target" {
		return
	}
	switch {
	case target["averageUtilization"] != nil:
		target["type"] = "Utilization"
	case target["averageValue"] != nil:
		target["type"] = "AverageValue"
	case target["value"] != nil:
		target["type"] = "Value"
	}
}

func metricsDown(o Object) error {
	if spec := sub(o, "spec"); spec != nil {
		if sub(spec, "behavior") != nil {
			return fmt.Errorf("spec.behavior cannot be said in %s", "autoscaling/v2beta1")
		}
		each(spec, "metrics", func(m Object) { metricDown(m, "target", "target") })
	}
	if status := sub(o, "status"); status != nil {
		each(status, "currentMetrics", func(m Object) { metricDown(m, "current", "current") })
	}
	return nil
}

func metricDown(m Object, field, prefix string) {
	take := func(kind string) (s, metric, target Object) {
		if s = sub(m, kind); s == nil {
			return nil, nil, nil
		}
		metric, target = sub2(s, "metric"), sub2(s, field)
		delete(s, "metric")
		delete(s, field)
		return s, metric, target
	}
	for _, kind := range []string{"resource", "containerResource"} {
		if s, _, target := take(kind); s != nil {
			move(target, "averageUtilization", s, prefix+"AverageUtilization")
			move(target, "averageValue", s, prefix+"AverageValue")
		}
	}
	if s, metric, target := take("pods"); s != nil {
		move(metric, "name", s, "metricName")
		move(metric, "selector", s, "selector")
		move(target, "averageValue", s, prefix+"AverageValue")
	}
	if s, metric, target := take("object"); s != nil {
		move(s, "describedObject", s, "target")
		move(metric, "name", s, "metricName")
		move(metric, "selector", s, "selector")
		move(target, "value", s, prefix+"Value")
		move(target, "averageValue", s, "averageValue")
		preset(s, prefix+"Value", "0")
	}
	if s, metric, target := take("external"); s != nil {
		move(metric, "name", s, "metricName")
		move(metric, "selector", s, "metricSelector")
		move(target, "value", s, prefix+"Value")
		move(target, "averageValue", s, prefix+"AverageValue")
	}
}
