package history

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// tree is a part of an OpenAPI schema.
type tree map[string]any

// schemas describe the kinds of the group, for OpenAPI documents and kubectl explain.
var schemas = map[string]tree{
	"Revision":        kind("Revision is one write of one object in a namespace.", revisionFields()),
	"ClusterRevision": kind("ClusterRevision is one write of one object that is in no namespace.", revisionFields()),
	"Difference": kind("Difference lists the changes between two states of one object.", tree{
		"object":        reference(),
		"from":          text("Revision of the write that made the earlier state."),
		"to":            text("Revision of the write that made the later state."),
		"fromWrittenAt": timestamp("Time of the write of from."),
		"toWrittenAt":   timestamp("Time of the write of to."),
		"truncated":     flag("There are more changes than are listed."),
		"changes": list("The fields that differ.", object("One field that differs.", tree{
			"path":    text("The field; empty for the whole object, which one of the states did not have."),
			"op":      text("What happened to it: add, remove or replace."),
			"from":    anything("Its value before."),
			"to":      anything("Its value after."),
			"manager": text("The field manager that owns it after the change, or the only one that wrote in between."),
			"omitted": flag("The values are too long to be shown."),
		})),
	}),
	"Moment": kind("Moment is the revision in effect at a time.", tree{
		"revision":  text("The newest revision that was written up to that time."),
		"writtenAt": timestamp("When it was written, if that is still known."),
		"oldest":    text("The first revision at which everything can be read."),
	}),
}

func revisionFields() tree {
	return tree{
		"object":        reference(),
		"revision":      text("Number of the write, as a resourceVersion."),
		"previous":      text("Number of the previous write of the object, if that is kept."),
		"change":        text("What the write did: create, update or delete."),
		"writtenAt":     timestamp("When it was written."),
		"supersededBy":  text("Number of the next write; empty for the newest one."),
		"user":          text("The user of the write, if an annotation of the object names it."),
		"changedFields": list("Fields that differ from the previous write, without those that every write changes.", text("A path.")),
		"managers": list("The entries of managedFields that the write made or renewed.", object("An entry.", tree{
			"manager":     text("Name of the field manager."),
			"operation":   text("Apply or Update."),
			"subresource": text("The subresource that was written, empty for the object itself."),
			"time":        timestamp("The time of the entry."),
		})),
		"moreChangedFields": flag("There are more changed fields than are listed."),
		"unreadable":        text("Why the object cannot be read, if it cannot."),
		"content": tree{
			"type": "object", "description": "The object as it was written; for a delete, its last state.", "x-kubernetes-preserve-unknown-fields": true,
		},
	}
}

func reference() tree {
	return object("The object whose past it is.", tree{
		"resource":  text("Plural name of the resource."),
		"group":     text("Group of the resource; empty for the core group."),
		"version":   text("Version of the content."),
		"kind":      text("Kind of the object."),
		"namespace": text("Its namespace."),
		"name":      text("Its name."),
		"uid":       text("Its UID."),
	})
}

// kind is an object with the fields of every kind.
func kind(description string, fields tree) tree {
	meta := metav1.TypeMeta{}.SwaggerDoc()
	fields["apiVersion"], fields["kind"] = text(meta["apiVersion"]), text(meta["kind"])
	fields["metadata"] = tree{
		"description": metav1.PartialObjectMetadata{}.SwaggerDoc()["metadata"], "default": tree{},
		"allOf": []tree{{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}},
	}
	return object(description, fields)
}

func object(description string, fields tree) tree {
	return tree{"type": "object", "description": description, "properties": fields}
}

func text(description string) tree { return tree{"type": "string", "description": description} }

func flag(description string) tree { return tree{"type": "boolean", "description": description} }

func timestamp(description string) tree {
	return tree{"type": "string", "format": "date-time", "description": description}
}

func list(description string, items tree) tree {
	return tree{"type": "array", "description": description, "items": items}
}

func anything(description string) tree {
	return tree{"description": description, "x-kubernetes-preserve-unknown-fields": true}
}
