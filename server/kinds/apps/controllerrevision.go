package apps

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ControllerRevision has the rules for ControllerRevisions.
var ControllerRevision = kinds.Typed[*appsv1.ControllerRevision]{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Meta:                &kinds.WholeMeta,
	PrepareForCreate:    joinLines,
	PrepareForUpdate:    func(r, _ *appsv1.ControllerRevision) { joinLines(r) },
	Validate:            validateControllerRevision,
	ValidateUpdate:      validateControllerRevisionUpdate,
	UnconditionalUpdate: true,
}.Strategy()

// ControllerRevisionColumns is their Table form.
var ControllerRevisionColumns = columns.Of(controllerRevisionCells,
	columns.Name(),
	columns.Text("Controller", "Controller of the object"),
	columns.Text("Revision", strings.Replace(appsv1.ControllerRevision{}.SwaggerDoc()["revision"], "Revision", "revision", 1)),
	columns.Age(),
)

func controllerRevisionCells(r *appsv1.ControllerRevision, now time.Time) []any {
	owner := "<none>"
	if ref := metav1.GetControllerOf(r); ref != nil {
		gk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		owner = strings.ToLower(gk.String()) + "/" + ref.Name
	}
	return []any{r.Name, owner, r.Revision, columns.Since(r.CreationTimestamp, now)}
}

func validateControllerRevision(r *appsv1.ControllerRevision) field.ErrorList {
	path := field.NewPath("data")
	errs := rules.NotNegative(r.Revision, field.NewPath("revision"))
	if raw := bytes.TrimSpace(r.Data.Raw); len(raw) == 0 {
		errs = append(errs, field.Required(path, "data is mandatory"))
	} else if raw[0] != '{' || !json.Valid(raw) {
		errs = append(errs, field.Required(path, "data must be a valid JSON object"))
	}
	return errs
}

func validateControllerRevisionUpdate(r, old *appsv1.ControllerRevision) field.ErrorList {
	errs := rules.NotNegative(r.Revision, field.NewPath("revision"))
	if !bytes.Equal(r.Data.Raw, old.Data.Raw) { // the very bytes: a patch compacts them
		errs = append(errs, field.Invalid(field.NewPath("data"), rules.Shown(r.Data), apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

// joinLines puts data that was written on several lines on one, its spelling left as
// it is.
func joinLines(r *appsv1.ControllerRevision) {
	if bytes.ContainsAny(r.Data.Raw, "\n\r\t") {
		r.Data.Raw = bytes.Map(func(c rune) rune {
			if c < ' ' { // only between tokens: strings escape it
				return ' '
			}
			return c
		}, r.Data.Raw)
	}
}
