package convert

// ingressUp names services and ports as networking/v1 does.
func ingressUp(o Object) error {
	spec := must(o, "spec")
	move(spec, "backend", spec, "defaultBackend")
	backendUp(sub(spec, "defaultBackend"))
	each(spec, "rules", func(rule Object) {
		each(sub2(rule, "http"), "paths", func(path Object) {
			preset(path, "pathType", "ImplementationSpecific")
			backendUp(sub(path, "backend"))
		})
	})
	return nil
}

func backendUp(b Object) {
	if b == nil {
		return
	}
	name, port := text(b, "serviceName"), b["servicePort"]
	delete(b, "serviceName")
	delete(b, "servicePort")
	if name == "" && port == nil {
		return
	}
	service := Object{"name": name}
	switch p := port.(type) {
	case string:
		service["port"] = Object{"name": p}
	case nil:
	default:
		service["port"] = Object{"number": p}
	}
	b["service"] = service
}

func ingressDown(o Object) error {
	spec := must(o, "spec")
	move(spec, "defaultBackend", spec, "backend")
	backendDown(sub(spec, "backend"))
	each(spec, "rules", func(rule Object) {
		each(sub2(rule, "http"), "paths", func(path Object) { backendDown(sub(path, "backend")) })
	})
	return nil
}

func backendDown(b Object) {
	service := sub(b, "service")
	if service == nil {
		return
	}
	delete(b, "service")
	b["serviceName"] = text(service, "name")
	port := sub2(service, "port")
	if name := text(port, "name"); name != "" {
		b["servicePort"] = name
	} else if n := port["number"]; n != nil {
		b["servicePort"] = n
	}
}

// Labels of nodes that were the topology of endpoints.
const (
	hostnameLabel = "kubernetes.io/hostname"
	zoneLabel     = "topology.kubernetes.io/zone"
)

// endpointsUp takes node and zone out of the topology of endpoints.
func endpointsUp(o Object) error {
	each(o, "endpoints", func(e Object) {
		topology := sub(e, "topology")
		delete(e, "topology")
		if topology == nil {
			return
		}
		if text(e, "nodeName") == "" {
			move(topology, hostnameLabel, e, "nodeName")
		}
		delete(topology, hostnameLabel)
		move(topology, zoneLabel, e, "zone")
		if len(topology) > 0 {
			e["deprecatedTopology"] = topology
		}
	})
	return nil
}

func endpointsDown(o Object) error {
	each(o, "endpoints", func(e Object) {
		topology := sub2(e, "deprecatedTopology")
		delete(e, "deprecatedTopology")
		move(e, "zone", topology, zoneLabel)
		if node := text(e, "nodeName"); node != "" {
			topology[hostnameLabel] = node
		}
		if len(topology) > 0 {
			e["topology"] = topology
		}
	})
	return nil
}
