package gnostic

import "google.golang.org/protobuf/encoding/protowire"

// message is a type of gnostic's messages.
type message int

const (
	documentMessage message = iota
	infoMessage
	contactMessage
	licenseMessage
	pathsMessage
	pathItemMessage
	operationMessage
	parameterMessage
	parameterOrReference
	requestBodyMessage
	requestBodyOrReference
	responsesMessage
	responseMessage
	responseOrReference
	mediaTypesMessage
	mediaTypeMessage
	componentsMessage
	schemasMessage
	schemaMessage
	schemaOrReference
	discriminatorMessage
	stringsMessage
	xmlMessage
	externalDocsMessage
	securityRequirementMessage
	securitySchemesMessage
	securitySchemeMessage
	securitySchemeOrReference
	oauthFlowsMessage
	oauthFlowMessage
	tagMessage
	serverMessage
	serverVariablesMessage
	serverVariableMessage
	examplesMessage
	exampleMessage
	exampleOrReference
	headersMessage
	headerMessage
	headerOrReference
	encodingsMessage
	encodingMessage
	linksMessage
	linkMessage
	linkOrReference
	expressionMessage
	callbacksMessage
	callbackMessage
	callbackOrReference
	parametersMessage
	requestBodiesMessage
	responsesByNameMessage
	referenceMessage

	// Messages of OpenAPI 2 that differ.
	swaggerMessage
	swaggerInfoMessage
	swaggerPathsMessage
	swaggerPathItemMessage
	swaggerOperationMessage
	swaggerParameterOrReference
	swaggerParameterMessage
	swaggerBodyMessage
	swaggerNonBody
	swaggerPathParameterMessage
	swaggerQueryParameterMessage
	swaggerParametersMessage
	swaggerResponsesMessage
	swaggerResponseMessage
	swaggerSchemaMessage
	swaggerSchemasMessage
	swaggerSecurityMessage
	swaggerAPIKeyMessage
	swaggerReferenceMessage
)

// shape is the encoding of a field.
type shape int

const (
	text shape = iota
	texts
	textList   // the same, in a message of their own
	textWithin // a text, in a message of its own
	boolean
	integer
	double
	yaml // a message with the text of a value
	yamls
	one // a message
	many
	within // a message with a message
	expression
	additional
	defaultValue
)

// field is the field of a message that has the value of a member.
type field struct {
	key    string
	number protowire.Number
	shape  shape
	of     message
}

// layout is the layout of a message. Fields are in the order of their numbers, before entries and extensions.
type layout struct {
	fields     []field
	entries    field                      // of members that fields does not name; none: there may be no others
	extensions protowire.Number           // of members whose names begin with x-
	choose     func(members object) field // returns the only field, which has the whole object; nil: there are others
}

// orReference chooses between the message of an object and a reference.
func orReference(of, reference message) func(object) field {
	return func(members object) field {
		if _, refers := members["$ref"]; refers {
			return field{"", 2, one, reference}
		}
		return field{"", 1, one, of}
	}
}

// swaggerParameter and swaggerNonBodyParameter choose the message of a parameter of OpenAPI 2.
func swaggerParameter(members object) field {
	if members["in"] == "body" {
		return field{"", 1, one, swaggerBodyMessage}
	}
	return field{"", 2, one, swaggerNonBody}
}

func swaggerNonBodyParameter(members object) field {
	if members["in"] == "path" {
		return field{"", 4, one, swaggerPathParameterMessage}
	}
	return field{"", 3, one, swaggerQueryParameterMessage}
}

// layouts are the messages of OpenAPI 3, and those of OpenAPI 2 as far as documents of API servers have them. Numbers are from
// gnostic's OpenAPIv3.proto and OpenAPIv2.proto.
var layouts = [...]layout{
	documentMessage: {fields: []field{
		{"openapi", 1, text, 0}, {"info", 2, one, infoMessage}, {"servers", 3, many, serverMessage}, {"paths", 4, one, pathsMessage}, {"components", 5, one, componentsMessage},
		{"security", 6, many, securityRequirementMessage}, {"tags", 7, many, tagMessage}, {"externalDocs", 8, one, externalDocsMessage},
	}, extensions: 9},
	infoMessage: {fields: []field{
		{"title", 1, text, 0}, {"description", 2, text, 0}, {"termsOfService", 3, text, 0}, {"contact", 4, one, contactMessage},
		{"license", 5, one, licenseMessage}, {"version", 6, text, 0}, {"summary", 8, text, 0},
	}, extensions: 7},
	contactMessage: {fields: []field{{"name", 1, text, 0}, {"url", 2, text, 0}, {"email", 3, text, 0}}, extensions: 4},
	licenseMessage: {fields: []field{{"name", 1, text, 0}, {"url", 2, text, 0}}, extensions: 3},
	pathsMessage:   {entries: field{"", 1, one, pathItemMessage}, extensions: 2},
	pathItemMessage: {fields: []field{
		{"$ref", 1, text, 0}, {"summary", 2, text, 0}, {"description", 3, text, 0}, {"get", 4, one, operationMessage},
		{"put", 5, one, operationMessage}, {"post", 6, one, operationMessage}, {"delete", 7, one, operationMessage},
		{"options", 8, one, operationMessage}, {"head", 9, one, operationMessage}, {"patch", 10, one, operationMessage},
		{"trace", 11, one, operationMessage}, {"servers", 12, many, serverMessage}, {"parameters", 13, many, parameterOrReference},
	}, extensions: 14},
	operationMessage: {fields: []field{
		{"tags", 1, texts, 0}, {"summary", 2, text, 0}, {"description", 3, text, 0}, {"externalDocs", 4, one, externalDocsMessage},
		{"operationId", 5, text, 0}, {"parameters", 6, many, parameterOrReference}, {"requestBody", 7, one, requestBodyOrReference},
		{"responses", 8, one, responsesMessage}, {"callbacks", 9, one, callbacksMessage}, {"deprecated", 10, boolean, 0},
		{"security", 11, many, securityRequirementMessage}, {"servers", 12, many, serverMessage},
	}, extensions: 13},
	parameterMessage: {fields: []field{
		{"name", 1, text, 0}, {"in", 2, text, 0}, {"description", 3, text, 0}, {"required", 4, boolean, 0}, {"deprecated", 5, boolean, 0},
		{"allowEmptyValue", 6, boolean, 0}, {"style", 7, text, 0}, {"explode", 8, boolean, 0}, {"allowReserved", 9, boolean, 0},
		{"schema", 10, one, schemaOrReference}, {"example", 11, yaml, 0}, {"examples", 12, one, examplesMessage},
		{"content", 13, one, mediaTypesMessage},
	}, extensions: 14},
	parameterOrReference: {choose: orReference(parameterMessage, referenceMessage)},
	requestBodyMessage: {fields: []field{
		{"description", 1, text, 0}, {"content", 2, one, mediaTypesMessage}, {"required", 3, boolean, 0},
	}, extensions: 4},
	requestBodyOrReference: {choose: orReference(requestBodyMessage, referenceMessage)},
	responsesMessage: {
		fields: []field{{"default", 1, one, responseOrReference}}, entries: field{"", 2, one, responseOrReference}, extensions: 3,
	},
	responseMessage: {fields: []field{
		{"description", 1, text, 0}, {"headers", 2, one, headersMessage}, {"content", 3, one, mediaTypesMessage}, {"links", 4, one, linksMessage},
	}, extensions: 5},
	responseOrReference: {choose: orReference(responseMessage, referenceMessage)},
	mediaTypesMessage:   {entries: field{"", 1, one, mediaTypeMessage}},
	mediaTypeMessage: {fields: []field{
		{"schema", 1, one, schemaOrReference}, {"example", 2, yaml, 0}, {"examples", 3, one, examplesMessage}, {"encoding", 4, one, encodingsMessage},
	}, extensions: 5},
	componentsMessage: {fields: []field{
		{"schemas", 1, one, schemasMessage}, {"responses", 2, one, responsesByNameMessage}, {"parameters", 3, one, parametersMessage},
		{"examples", 4, one, examplesMessage}, {"requestBodies", 5, one, requestBodiesMessage}, {"headers", 6, one, headersMessage},
		{"securitySchemes", 7, one, securitySchemesMessage}, {"links", 8, one, linksMessage}, {"callbacks", 9, one, callbacksMessage},
	}, extensions: 10},
	schemasMessage: {entries: field{"", 1, one, schemaOrReference}},
	schemaMessage: {fields: []field{
		{"nullable", 1, boolean, 0}, {"discriminator", 2, one, discriminatorMessage}, {"readOnly", 3, boolean, 0}, {"writeOnly", 4, boolean, 0},
		{"xml", 5, one, xmlMessage}, {"externalDocs", 6, one, externalDocsMessage}, {"example", 7, yaml, 0}, {"deprecated", 8, boolean, 0},
		{"title", 9, text, 0}, {"multipleOf", 10, double, 0}, {"maximum", 11, double, 0}, {"exclusiveMaximum", 12, boolean, 0},
		{"minimum", 13, double, 0}, {"exclusiveMinimum", 14, boolean, 0}, {"maxLength", 15, integer, 0}, {"minLength", 16, integer, 0},
		{"pattern", 17, text, 0}, {"maxItems", 18, integer, 0}, {"minItems", 19, integer, 0}, {"uniqueItems", 20, boolean, 0},
		{"maxProperties", 21, integer, 0}, {"minProperties", 22, integer, 0}, {"required", 23, texts, 0}, {"enum", 24, yamls, 0},
		{"type", 25, text, 0}, {"allOf", 26, many, schemaOrReference}, {"oneOf", 27, many, schemaOrReference},
		{"anyOf", 28, many, schemaOrReference}, {"not", 29, one, schemaMessage}, {"items", 30, within, schemaOrReference},
		{"properties", 31, one, schemasMessage}, {"additionalProperties", 32, additional, schemaOrReference},
		{"default", 33, defaultValue, 0}, {"description", 34, text, 0}, {"format", 35, text, 0},
	}, extensions: 36},
	schemaOrReference:    {choose: orReference(schemaMessage, referenceMessage)},
	discriminatorMessage: {fields: []field{{"propertyName", 1, text, 0}, {"mapping", 2, one, stringsMessage}}, extensions: 3},
	stringsMessage:       {entries: field{"", 1, text, 0}},
	xmlMessage: {fields: []field{
		{"name", 1, text, 0}, {"namespace", 2, text, 0}, {"prefix", 3, text, 0}, {"attribute", 4, boolean, 0}, {"wrapped", 5, boolean, 0},
	}, extensions: 6},
	externalDocsMessage:        {fields: []field{{"description", 1, text, 0}, {"url", 2, text, 0}}, extensions: 3},
	securityRequirementMessage: {entries: field{"", 1, textList, 0}},
	securitySchemesMessage:     {entries: field{"", 1, one, securitySchemeOrReference}},
	securitySchemeMessage: {fields: []field{
		{"type", 1, text, 0}, {"description", 2, text, 0}, {"name", 3, text, 0}, {"in", 4, text, 0}, {"scheme", 5, text, 0},
		{"bearerFormat", 6, text, 0}, {"flows", 7, one, oauthFlowsMessage}, {"openIdConnectUrl", 8, text, 0},
	}, extensions: 9},
	oauthFlowsMessage: {fields: []field{
		{"implicit", 1, one, oauthFlowMessage}, {"password", 2, one, oauthFlowMessage}, {"clientCredentials", 3, one, oauthFlowMessage},
		{"authorizationCode", 4, one, oauthFlowMessage},
	}, extensions: 5},
	oauthFlowMessage: {fields: []field{
		{"authorizationUrl", 1, text, 0}, {"tokenUrl", 2, text, 0}, {"refreshUrl", 3, text, 0}, {"scopes", 4, one, stringsMessage},
	}, extensions: 5},
	securitySchemeOrReference: {choose: orReference(securitySchemeMessage, referenceMessage)},
	tagMessage: {fields: []field{
		{"name", 1, text, 0}, {"description", 2, text, 0}, {"externalDocs", 3, one, externalDocsMessage},
	}, extensions: 4},
	serverMessage: {fields: []field{
		{"url", 1, text, 0}, {"description", 2, text, 0}, {"variables", 3, one, serverVariablesMessage},
	}, extensions: 4},
	serverVariablesMessage: {entries: field{"", 1, one, serverVariableMessage}},
	serverVariableMessage:  {fields: []field{{"enum", 1, texts, 0}, {"default", 2, text, 0}, {"description", 3, text, 0}}, extensions: 4},
	examplesMessage:        {entries: field{"", 1, one, exampleOrReference}},
	exampleMessage: {fields: []field{
		{"summary", 1, text, 0}, {"description", 2, text, 0}, {"value", 3, yaml, 0}, {"externalValue", 4, text, 0},
	}, extensions: 5},
	exampleOrReference: {choose: orReference(exampleMessage, referenceMessage)},
	headersMessage:     {entries: field{"", 1, one, headerOrReference}},
	headerMessage: {fields: []field{
		{"description", 1, text, 0}, {"required", 2, boolean, 0}, {"deprecated", 3, boolean, 0}, {"allowEmptyValue", 4, boolean, 0},
		{"style", 5, text, 0}, {"explode", 6, boolean, 0}, {"allowReserved", 7, boolean, 0}, {"schema", 8, one, schemaOrReference},
		{"example", 9, yaml, 0}, {"examples", 10, one, examplesMessage}, {"content", 11, one, mediaTypesMessage},
	}, extensions: 12},
	headerOrReference: {choose: orReference(headerMessage, referenceMessage)},
	encodingsMessage:  {entries: field{"", 1, one, encodingMessage}},
	encodingMessage: {fields: []field{
		{"contentType", 1, text, 0}, {"headers", 2, one, headersMessage}, {"style", 3, text, 0}, {"explode", 4, boolean, 0}, {"allowReserved", 5, boolean, 0},
	}, extensions: 6},
	linksMessage: {entries: field{"", 1, one, linkOrReference}},
	linkMessage: {fields: []field{
		{"operationRef", 1, text, 0}, {"operationId", 2, text, 0}, {"parameters", 3, expression, expressionMessage},
		{"requestBody", 4, expression, expressionMessage}, {"description", 5, text, 0}, {"server", 6, one, serverMessage},
	}, extensions: 7},
	linkOrReference:        {choose: orReference(linkMessage, referenceMessage)},
	expressionMessage:      {entries: field{"", 1, yaml, 0}},
	callbacksMessage:       {entries: field{"", 1, one, callbackOrReference}},
	callbackMessage:        {entries: field{"", 1, one, pathItemMessage}, extensions: 2},
	callbackOrReference:    {choose: orReference(callbackMessage, referenceMessage)},
	parametersMessage:      {entries: field{"", 1, one, parameterOrReference}},
	requestBodiesMessage:   {entries: field{"", 1, one, requestBodyOrReference}},
	responsesByNameMessage: {entries: field{"", 1, one, responseOrReference}},
	referenceMessage:       {fields: []field{{"$ref", 1, text, 0}, {"summary", 2, text, 0}, {"description", 3, text, 0}}},

	swaggerMessage: {fields: []field{
		{"swagger", 1, text, 0}, {"info", 2, one, swaggerInfoMessage}, {"paths", 8, one, swaggerPathsMessage}, {"definitions", 9, one, swaggerSchemasMessage},
		{"parameters", 10, one, swaggerParametersMessage}, {"security", 12, many, securityRequirementMessage},
		{"securityDefinitions", 13, one, swaggerSecurityMessage},
	}},
	swaggerInfoMessage:  {fields: []field{{"title", 1, text, 0}, {"version", 2, text, 0}}},
	swaggerPathsMessage: {entries: field{"", 2, one, swaggerPathItemMessage}, extensions: 1},
	swaggerPathItemMessage: {fields: []field{
		{"get", 2, one, swaggerOperationMessage}, {"put", 3, one, swaggerOperationMessage}, {"post", 4, one, swaggerOperationMessage},
		{"delete", 5, one, swaggerOperationMessage}, {"options", 6, one, swaggerOperationMessage}, {"head", 7, one, swaggerOperationMessage},
		{"patch", 8, one, swaggerOperationMessage}, {"parameters", 9, many, swaggerParameterOrReference},
	}, extensions: 10},
	swaggerOperationMessage: {fields: []field{
		{"tags", 1, texts, 0}, {"description", 3, text, 0}, {"operationId", 5, text, 0}, {"produces", 6, texts, 0}, {"consumes", 7, texts, 0},
		{"parameters", 8, many, swaggerParameterOrReference}, {"responses", 9, one, swaggerResponsesMessage}, {"schemes", 10, texts, 0},
	}, extensions: 13},
	swaggerParameterOrReference: {choose: orReference(swaggerParameterMessage, swaggerReferenceMessage)},
	swaggerParameterMessage:     {choose: swaggerParameter},
	swaggerNonBody:              {choose: swaggerNonBodyParameter},
	swaggerBodyMessage: {fields: []field{
		{"name", 2, text, 0}, {"in", 3, text, 0}, {"required", 4, boolean, 0}, {"schema", 5, one, swaggerSchemaMessage},
	}},
	swaggerPathParameterMessage: {fields: []field{
		{"required", 1, boolean, 0}, {"in", 2, text, 0}, {"description", 3, text, 0}, {"name", 4, text, 0}, {"type", 5, text, 0}, {"uniqueItems", 19, boolean, 0},
	}},
	swaggerQueryParameterMessage: {fields: []field{
		{"required", 1, boolean, 0}, {"in", 2, text, 0}, {"description", 3, text, 0}, {"name", 4, text, 0}, {"type", 6, text, 0}, {"uniqueItems", 20, boolean, 0},
	}},
	swaggerParametersMessage: {entries: field{"", 1, one, swaggerParameterMessage}},
	swaggerResponsesMessage:  {entries: field{"", 1, within, swaggerResponseMessage}, extensions: 2},
	swaggerResponseMessage:   {fields: []field{{"description", 1, text, 0}, {"schema", 2, within, swaggerSchemaMessage}}},
	swaggerSchemaMessage: {fields: []field{
		{"$ref", 1, text, 0}, {"format", 2, text, 0}, {"title", 3, text, 0}, {"description", 4, text, 0}, {"multipleOf", 6, double, 0},
		{"maximum", 7, double, 0}, {"exclusiveMaximum", 8, boolean, 0}, {"minimum", 9, double, 0}, {"exclusiveMinimum", 10, boolean, 0},
		{"maxLength", 11, integer, 0}, {"minLength", 12, integer, 0}, {"pattern", 13, text, 0}, {"maxItems", 14, integer, 0},
		{"minItems", 15, integer, 0}, {"uniqueItems", 16, boolean, 0}, {"maxProperties", 17, integer, 0}, {"minProperties", 18, integer, 0},
		{"required", 19, texts, 0}, {"enum", 20, yamls, 0}, {"additionalProperties", 21, additional, swaggerSchemaMessage}, {"type", 22, textWithin, 0},
		{"items", 23, within, swaggerSchemaMessage}, {"allOf", 24, many, swaggerSchemaMessage}, {"properties", 25, one, swaggerSchemasMessage},
		{"readOnly", 27, boolean, 0},
	}, extensions: 31},
	swaggerSchemasMessage:  {entries: field{"", 1, one, swaggerSchemaMessage}},
	swaggerSecurityMessage: {entries: field{"", 1, expression, swaggerAPIKeyMessage}},
	swaggerAPIKeyMessage: {fields: []field{
		{"type", 1, text, 0}, {"name", 2, text, 0}, {"in", 3, text, 0}, {"description", 4, text, 0},
	}},
	swaggerReferenceMessage: {fields: []field{{"$ref", 1, text, 0}}},
}
